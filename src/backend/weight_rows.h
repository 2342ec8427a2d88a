// Host side of upload_weight for devices that repack: rows of a segment in their stored type.
#pragma once

#include <span>
#include <vector>

#include "backend/weight.h"

namespace aerie {

class WeightRows {
  public:
    // The blocks of one segment; they outlive this.
    explicit WeightRows(std::span<const WeightBlock> blocks);

    int cols() const { return blocks_.front().cols; }

    // Row `index` in the segment's type: floats, or blocks of it. Good until the next call.
    const std::byte* row(int index);

  private:
    void read_floats(const WeightBlock& block, const std::byte* data);
    void pack();

    std::span<const WeightBlock> blocks_;
    DType stored_;
    std::vector<float> values_;
    std::vector<std::byte> packed_;
};

}  // namespace aerie
