// A matrix in a tensor of a checkpoint, with rows that are read on demand.
#pragma once

#include "backend/weight.h"
#include "io/checkpoint.h"

namespace aerie {

// `data` is a part of the tensor as `type`, and will be stored as `as`. Throws Error naming file
// and tensor if it has NaN or infinity, also after storing: packing would hide it.
void check_finite(const Checkpoint& checkpoint, const NamedTensor& tensor,
                  std::span<const std::byte> data, DType type, DType as);

// Where a matrix lies in a tensor. `first`: its first element.
struct MatrixSlice {
    size_t first;
    int cols;
    std::span<const int32_t> rows = {};  // the tensor's rows that it has; empty: all that follow
};

// The checkpoint and the tensor must outlive it.
class TensorRows final : public RowSource {
  public:
    TensorRows(const Checkpoint& checkpoint, const NamedTensor& tensor, DType stored,
               MatrixSlice slice);

    // The type in which rows are read: the tensor's own, or Q8_0 or F32 if a quantised tensor is to
    // be stored as another type.
    DType type() const { return type_; }
    void read(int first, int count, std::byte* out) const override;

  private:
    const Checkpoint& checkpoint_;
    const NamedTensor& tensor_;
    DType type_, stored_;
    MatrixSlice slice_;
};

}  // namespace aerie
