// What the glue of ops shares: strides in words, groups of a grid.
#pragma once

#include "core/tensor.h"

namespace aerie::vulkan {

constexpr int kGroupSize = 64;  // invocations of a workgroup, unless a shader says otherwise

inline uint32_t stride_words(const Tensor& t) {
    return uint32_t(size_bytes(t.dtype, size_t(t.row_stride)) / 4);
}

// Workgroups of `size` that cover `count`.
inline uint32_t groups(int count, int size) {
    return uint32_t((count + size - 1) / size);
}

// Units of a row: elements, or groups of a quantised type.
inline uint32_t units(const Tensor& out) {
    return uint32_t(out.cols / unit_elements(out.dtype));
}

// Whether a shader quantises what it writes: its first constant.
inline uint32_t quantises(const Tensor& out) {
    return is_quantised(out.dtype);
}

}  // namespace aerie::vulkan
