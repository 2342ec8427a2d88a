// Shapes as text and as checked byte counts.
#include "io/tensor_file.h"

#include "core/error.h"

namespace aerie {
namespace {

constexpr size_t kMaxDims = 8;

}  // namespace

std::string shape_text(std::span<const int64_t> shape) {
    std::string text = "[";
    for (const int64_t dim : shape) {
        if (text.size() > 1) text += ", ";
        text += std::to_string(dim);
    }
    return text + "]";
}

size_t checked_bytes(std::span<const int64_t> shape, DType dtype, const std::string& what) {
    if (shape.size() > kMaxDims) {
        throw Error(what + ": " + std::to_string(shape.size()) + " dimensions, expected at most " +
                    std::to_string(kMaxDims));
    }
    size_t bytes = size_bytes(dtype);
    bool empty = false;
    for (const int64_t dim : shape) {
        if (dim < 0) throw Error(what + ": negative dimension in shape " + shape_text(shape));
        empty = empty || dim == 0;
        // Zeros are left out, so that a shape is refused or not whatever the order of its
        // dimensions.
        if (dim != 0 && __builtin_mul_overflow(bytes, size_t(dim), &bytes)) {
            throw Error(what + ": shape " + shape_text(shape) + " overflows");
        }
    }
    return empty ? 0 : bytes;
}

}  // namespace aerie
