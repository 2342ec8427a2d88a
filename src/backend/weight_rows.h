// Host side of upload_weight for devices that repack: rows of stacked blocks in the stored type.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"

namespace aerie {

class WeightRows {
  public:
    // The blocks stacked; all have the same columns and outlive this.
    WeightRows(std::span<const WeightBlock> blocks, DType as);

    int rows() const { return rows_; }
    int cols() const { return blocks_.front().cols; }

    // Row `index` as `as`: floats, or groups of it. Good until the next call.
    const std::byte* row(int index);

  private:
    void read_floats(const WeightBlock& block, const std::byte* data);
    void pack();

    std::span<const WeightBlock> blocks_;
    DType as_;
    int rows_ = 0;
    std::vector<float> values_;
    std::vector<std::byte> packed_;
};

}  // namespace aerie
