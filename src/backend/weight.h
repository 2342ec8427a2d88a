// Weights: matrices on a device whose rows may be stored in several types, and what they are made
// of.
#pragma once

#include <span>
#include <vector>

#include "core/dtype.h"

namespace aerie {

// Host data of some rows of a weight, [rows, cols], contiguous. q, k and v arrive as three blocks.
struct WeightBlock {
    DType dtype = DType::F32;    // of the data
    DType stored = DType::F32;   // that the device is to keep the rows in
    const void* data = nullptr;  // any alignment; not used after upload_weight
    int rows = 0;
    int cols = 0;
};

// lookup: by embed only. gated: two blocks of equal rows, gate and up, that matmul_swiglu reads.
enum class WeightUse { multiply, gated, lookup };

// Rows [first_row, first_row + rows) of a weight, stored in one type.
struct WeightSegment {
    DType dtype = DType::F32;
    int first_row = 0;
    int rows = 0;
};

// A matrix [rows, cols] on the device, in the backend's own layout; the right side of a matmul.
// Each of its outputs has the bits that it has where its segment is a weight of its own.
class Weight {
  public:
    // Blocks that follow each other and are stored in the same type make one segment. All have the
    // same columns.
    explicit Weight(std::span<const WeightBlock> blocks);
    virtual ~Weight() = default;

    int rows = 0;  // outputs
    int cols = 0;  // inputs
    std::vector<WeightSegment> segments;

    // Whether all rows are.
    bool is_stored_as(DType type) const {
        return segments.size() == 1 && segments.front().dtype == type;
    }
};

// The blocks that a segment of theirs is made of.
std::span<const WeightBlock> blocks_of(std::span<const WeightBlock> blocks,
                                       const WeightSegment& segment);

}  // namespace aerie
