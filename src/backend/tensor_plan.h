// Lays out tensors in one allocation; the same plan tells how large it will be.
#pragma once

#include <vector>

#include "backend/backend.h"

namespace aerie {

class TensorPlan {
  public:
    // `tensor` is set by allocate and must still be at its place then.
    void add(Tensor& tensor, DType dtype, int rows, int cols) {
        tensor = dense(nullptr, dtype, rows, cols);
        tensor.offset_bytes = size_bytes_;
        tensors_.push_back(&tensor);
        size_bytes_ += (dense_bytes(dtype, rows, cols) + kAlignment - 1) / kAlignment * kAlignment;
    }

    size_t size_bytes() const { return size_bytes_; }

    Buffer allocate(Backend& be) const {
        Buffer buffer = be.allocate(size_bytes_);
        for (Tensor* tensor : tensors_) tensor->memory = buffer.get();
        return buffer;
    }

  private:
    static constexpr size_t kAlignment = 256;  // what every GPU accepts for a bound range
    size_t size_bytes_ = 0;
    std::vector<Tensor*> tensors_;
};

}  // namespace aerie
