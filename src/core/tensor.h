// Tensors, which are matrix views of device memory, and the buffers that own the memory.
#pragma once

#include <cstddef>
#include <memory>

#include "core/dtype.h"

namespace aerie {

// One allocation of a backend; each backend derives its own.
struct Memory {
    virtual ~Memory() = default;
    // Marks bytes that belong to no tensor (core/poison.h); does nothing if the host cannot check
    // it.
    virtual void poison(size_t offset, size_t bytes) { (void)offset, (void)bytes; }
    size_t size_bytes = 0;
};

// Owns its memory and frees it; move-only.
using Buffer = std::unique_ptr<Memory>;

// A view [rows, cols] into a Buffer, which must outlive it. Columns are contiguous.
struct Tensor {
    Memory* memory = nullptr;
    size_t offset_bytes = 0;
    DType dtype = DType::F32;
    int rows = 0;
    int cols = 0;
    int row_stride = 0;  // in elements; whole units of the type, as are the columns

    explicit operator bool() const { return memory != nullptr; }

    // Rows [first, first + count).
    Tensor row_range(int first, int count) const {
        Tensor view = *this;
        view.offset_bytes += size_t(first) * aerie::size_bytes(dtype, size_t(row_stride));
        view.rows = count;
        return view;
    }
    // Columns [first, first + count) of every row.
    Tensor col_range(int first, int count) const {
        Tensor view = *this;
        view.offset_bytes += aerie::size_bytes(dtype, size_t(first));
        view.cols = count;
        return view;
    }
};

// A dense view [rows, cols] at the start of a tensor that is large enough.
inline Tensor dense_prefix(Tensor tensor, DType dtype, int rows, int cols) {
    tensor.dtype = dtype;
    tensor.rows = rows;
    tensor.cols = tensor.row_stride = cols;
    return tensor;
}
inline Tensor dense_prefix(Tensor tensor, int rows, int cols) {
    return dense_prefix(tensor, tensor.dtype, rows, cols);
}

// A dense tensor [rows, cols] at the start of a buffer.
inline Tensor dense(Memory* memory, DType dtype, int rows, int cols) {
    return {memory, 0, dtype, rows, cols, cols};
}

inline bool is_dense(const Tensor& t) {
    return t.rows <= 1 || t.row_stride == t.cols;
}

inline size_t dense_bytes(DType dtype, int rows, int cols) {
    return size_t(rows) * size_bytes(dtype, size_t(cols));
}

}  // namespace aerie
