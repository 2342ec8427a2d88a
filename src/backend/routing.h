// Which experts the rows of a pass go to. All of it lies on the device and none of its sizes
// depends on what is chosen, so what is recorded holds for every pass.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/tensor.h"

namespace aerie {

constexpr int kMostExperts = 1024;   // of a layer
constexpr int kMostChosen = 32;      // experts of a row
constexpr int kExpertTileRows = 64;  // rows that are multiplied together, at most

// Places order[first .. first + count), all of one expert.
struct ExpertTile {
    int32_t expert = 0;
    int32_t first = 0;
    int32_t count = 0;  // 0: there are no more tiles
};
constexpr int kExpertTileInts = sizeof(ExpertTile) / sizeof(int32_t);

// Place r * k + i is that of row r's choice i.
struct Routing {
    Tensor ids;      // I32 [M, k]: no expert twice, the best first
    Tensor weights;  // F32 [M, k]
    Tensor order;    // I32 [1, M * k]: all places by expert, and by number
    Tensor tiles;    // I32 [most_expert_tiles, kExpertTileInts]: of an expert as few as do

    int rows() const { return ids.rows; }
    int chosen() const { return ids.cols; }  // k
    int places() const { return ids.rows * ids.cols; }
};

// Tiles that so many rows may need, each of which chooses some of the experts.
inline int most_expert_tiles(int rows, int chosen, int experts) {
    const int64_t places = int64_t(rows) * chosen, used = std::min<int64_t>(experts, places);
    const int64_t each = (rows + kExpertTileRows - 1) / kExpertTileRows;  // of one expert
    return int(std::min(used * each, (places + used * (kExpertTileRows - 1)) / kExpertTileRows));
}

}  // namespace aerie
