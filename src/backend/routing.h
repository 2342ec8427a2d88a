// The assignment of a pass's rows to experts. All of it lies on the device, and no size depends on
// the chosen experts, so one recording serves every pass.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor.h"

namespace aerie {

constexpr int kMaxExperts = 1024;    // experts of a layer
constexpr int kMaxChosen = 32;       // experts of a row
constexpr int kExpertTileRows = 64;  // most rows that are multiplied together

// The places order[first .. first + count), all of one expert.
struct ExpertTile {
    int32_t expert = 0;
    int32_t first = 0;
    int32_t count = 0;  // 0: there are no more tiles
};
constexpr int kExpertTileInts = sizeof(ExpertTile) / sizeof(int32_t);

// The experts that the rows of a pass have chosen. Place r * k + i belongs to choice i of row r.
struct Routing {
    Tensor ids;      // I32 [M, k]: different experts, the best first
    Tensor weights;  // F32 [M, k]
    Tensor order;    // I32 [1, M * k]: all places, by expert, then by number
    Tensor tiles;    // I32 [most_expert_tiles, kExpertTileInts]: as few as suffice

    int rows() const { return ids.rows; }
    int chosen() const { return ids.cols; }  // k
    int places() const { return ids.rows * ids.cols; }
};

// Upper bound on the tiles of `rows` rows, each of which chooses `chosen` experts.
inline int most_expert_tiles(int rows, int chosen, int experts) {
    const int64_t places = int64_t(rows) * chosen, used = std::min<int64_t>(experts, places);
    const int64_t each = (rows + kExpertTileRows - 1) / kExpertTileRows;  // tiles of one expert
    return int(std::min(used * each, (places + used * (kExpertTileRows - 1)) / kExpertTileRows));
}

}  // namespace aerie
