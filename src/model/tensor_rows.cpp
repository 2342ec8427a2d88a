// Rows are checked right after they are read, while they are in the cache.
#include "model/tensor_rows.h"

#include "core/error.h"
#include "core/finite.h"

namespace aerie {

void check_finite(const Checkpoint& checkpoint, const NamedTensor& tensor,
                  std::span<const std::byte> data, DType type, DType as) {
    if (!all_finite(data, type, as))
        throw Error(checkpoint.describe(tensor) + " holds NaN, infinity or what is beyond " +
                    aerie::name(as) + "; its weights are damaged");
}

TensorRows::TensorRows(const Checkpoint& checkpoint, const NamedTensor& tensor, DType stored,
                       MatrixSlice slice)
    : checkpoint_(checkpoint),
      tensor_(tensor),
      type_(!is_quantised(tensor.dtype) || stored == tensor.dtype ? tensor.dtype
            : stored == DType::Q8_0                               ? DType::Q8_0
                                                                  : DType::F32),
      stored_(stored),
      slice_(slice) {}

void TensorRows::read(int first, int count, std::byte* out) const {
    const size_t cols = size_t(slice_.cols);
    const size_t row_bytes = size_bytes(type_, cols);
    const std::span rows(out, size_t(count) * row_bytes);
    if (slice_.rows.empty()) {
        checkpoint_.read(tensor_, type_, slice_.first + size_t(first) * cols, rows);
    } else {
        for (int i = 0; i < count; ++i)
            checkpoint_.read(tensor_, type_,
                             slice_.first + size_t(slice_.rows[size_t(first + i)]) * cols,
                             rows.subspan(size_t(i) * row_bytes, row_bytes));
    }
    check_finite(checkpoint_, tensor_, rows, type_, stored_);
}

}  // namespace aerie
