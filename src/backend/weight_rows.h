// Host side of upload_weight for devices that repack: rows of a segment in their stored type.
#pragma once

#include <span>
#include <vector>

#include "backend/weight.h"

namespace aerie {

// One row after the other into another type, through f32.
class RowConverter {
  public:
    RowConverter(DType to, int cols);

    // `row` at any alignment; it itself if it is of this type, else good until the next call.
    const std::byte* convert(const std::byte* row, DType from);

  private:
    DType to_;
    std::vector<float> values_;
    std::vector<std::byte> packed_;
};

class WeightRows {
  public:
    // The blocks of one segment; they outlive this.
    explicit WeightRows(std::span<const WeightBlock> blocks);

    int cols() const { return blocks_.front().cols; }

    // Row `index` in the segment's type: floats, or blocks of it. Good until the next call.
    const std::byte* row(int index);

  private:
    const std::byte* find(const WeightBlock& block, int index);

    std::span<const WeightBlock> blocks_;
    RowConverter converter_;
    // Rows of a block that were read together.
    const WeightBlock* ahead_ = nullptr;
    int first_ = 0, last_ = 0;
    const std::byte* rows_ = nullptr;
    std::vector<std::byte> room_;
};

}  // namespace aerie
