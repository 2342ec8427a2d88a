// Reads and checks at once, while the rows are in the cache.
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
                       MatrixPlace place)
    : checkpoint_(checkpoint),
      tensor_(tensor),
      type_(is_quantised(tensor.dtype) && stored != tensor.dtype ? DType::F32 : tensor.dtype),
      stored_(stored),
      place_(place) {}

void TensorRows::read(int first, int count, std::byte* out) const {
    const size_t cols = size_t(place_.cols);
    const std::span rows(out, size_t(count) * size_bytes(type_, cols));
    checkpoint_.read(tensor_, type_, place_.first + size_t(first) * cols, rows);
    check_finite(checkpoint_, tensor_, rows, type_, stored_);
}

}  // namespace aerie
