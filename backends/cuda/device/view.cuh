// Tensors as kernels take them: an address, the distance of rows, and the shape.
#pragma once

#include <cuda_runtime.h>

#include "cuda/memory.h"

namespace aerie::cuda {

template <class T>
struct View {
    T* data;
    size_t stride;  // elements
    int rows, cols;

    View() = default;
    View(const Tensor& t)
        : data(t ? row<std::remove_const_t<T>>(t, 0) : nullptr),
          stride(size_t(t.row_stride)),
          rows(t.rows),
          cols(t.cols) {}
    template <class Other>
    View(const View<Other>& other)  // from View<T> to View<const T>
        : data(other.data), stride(other.stride), rows(other.rows), cols(other.cols) {}
    __device__ T* operator[](int r) const { return data + size_t(r) * stride; }
};

// Rows of activations that an op writes: F32, or I8G32.
struct ActivationView {
    std::byte* data;
    size_t stride_bytes;
    int rows, cols;
    bool quantised;

    ActivationView(const Tensor& t)
        : data(row<std::byte>(t, 0)),
          stride_bytes(size_bytes(t.dtype, size_t(t.row_stride))),
          rows(t.rows),
          cols(t.cols),
          quantised(t.dtype == DType::I8G32) {}
    __device__ std::byte* operator[](int r) const { return data + size_t(r) * stride_bytes; }
};

}  // namespace aerie::cuda
