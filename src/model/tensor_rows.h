// A matrix in a tensor of a checkpoint, read as its rows are wanted.
#pragma once

#include "backend/weight.h"
#include "io/checkpoint.h"

namespace aerie {

// `data` is some of the tensor as `type`; it will be stored as `as`. Throws Error naming file and
// tensor if one of its numbers is none: packing would hide it.
void check_finite(const Checkpoint& checkpoint, const NamedTensor& tensor,
                  std::span<const std::byte> data, DType type, DType as);

// Where a matrix lies in a tensor, in elements.
struct MatrixPlace {
    size_t first;
    int cols;
    std::span<const int32_t> rows =
        {};  // it has these of the tensor's rows; empty: all that follow
};

// Checkpoint and tensor outlive it.
class TensorRows final : public RowSource {
  public:
    TensorRows(const Checkpoint& checkpoint, const NamedTensor& tensor, DType stored,
               MatrixPlace place);

    // What rows are read as: their own type, or if a quantised one is to become another Q8_0 or
    // f32.
    DType type() const { return type_; }
    void read(int first, int count, std::byte* out) const override;

  private:
    const Checkpoint& checkpoint_;
    const NamedTensor& tensor_;
    DType type_, stored_;
    MatrixPlace place_;
};

}  // namespace aerie
