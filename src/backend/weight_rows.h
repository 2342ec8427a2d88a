// The host side of upload_weight for devices that repack: reads rows of a segment in the stored
// type.
#pragma once

#include <span>
#include <vector>

#include "backend/weight.h"

namespace aerie {

// Converts one row after another to a type, through f32.
class RowConverter {
  public:
    RowConverter(DType to, int cols);

    // `row` may have any alignment. Returns `row` itself if it has this type; otherwise the result
    // is valid until the next call.
    const std::byte* convert(const std::byte* row, DType from);

  private:
    DType to_;
    std::vector<float> values_;
    std::vector<std::byte> packed_;
};

class WeightRows {
  public:
    // The blocks of one segment; they must outlive this object.
    explicit WeightRows(std::span<const WeightBlock> blocks);

    int cols() const { return blocks_.front().cols; }

    // Row `index` in the stored type: floats, or blocks. Valid until the next call.
    const std::byte* row(int index);

  private:
    const std::byte* find(const WeightBlock& block, int index);

    std::span<const WeightBlock> blocks_;
    RowConverter converter_;
    // Rows of one block that were read together.
    const WeightBlock* ahead_ = nullptr;
    int first_ = 0, last_ = 0;
    const std::byte* rows_ = nullptr;
    std::vector<std::byte> room_;
};

}  // namespace aerie
