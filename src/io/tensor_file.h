// What every weight file format yields: named tensors that point into the mapped file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace aerie {

std::string shape_text(std::span<const int64_t> shape);  // "[4096, 256]"

struct NamedTensor {
    std::string name;
    DType dtype = DType::F32;
    std::vector<int64_t> shape;       // row-major, contiguous; at most 8 dimensions
    std::span<const std::byte> data;  // exactly as long as shape and dtype say; any alignment

    std::string shape_text() const { return aerie::shape_text(shape); }
};

// Product of the dimensions times the element size. Throws Error (naming `what`) if a dimension is
// negative, there are more than 8, or the product overflows.
size_t checked_bytes(std::span<const int64_t> shape, DType dtype, const std::string& what);

}  // namespace aerie
