// Shared by the files of ops: strides in words, sizes of grids.
#pragma once

#include "core/tensor.h"

namespace aerie::vulkan {

constexpr int kGroupSize = 64;  // invocations of a workgroup, unless a shader says otherwise

inline uint32_t stride_words(const Tensor& t) {
    return uint32_t(size_bytes(t.dtype, size_t(t.row_stride)) / 4);
}

// Number of workgroups of `size` items that cover `count` items.
inline uint32_t groups(int count, int size) {
    return uint32_t((count + size - 1) / size);
}

// Units of a row: elements, or groups of a quantised type.
inline uint32_t units(const Tensor& out) {
    return uint32_t(out.cols / unit_elements(out.dtype));
}

// Constant 0 of shaders that can quantise their output: whether they do.
inline uint32_t quantises(const Tensor& out) {
    return is_quantised(out.dtype);
}

}  // namespace aerie::vulkan
