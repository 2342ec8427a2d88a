// Lays out tensors in one allocation; the plan also gives its size before it is made.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "core/poison.h"

namespace aerie {

class TensorPlan {
  public:
    // allocate sets `tensor`, which must still be at the same address then.
    void add(Tensor& tensor, DType dtype, int rows, int cols) {
        tensor = dense(nullptr, dtype, rows, cols);
        tensor.offset_bytes = size_bytes_;
        tensors_.push_back(&tensor);
        const size_t bytes = dense_bytes(dtype, rows, cols);
        size_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment + kGuardBytes;
    }

    size_t size_bytes() const { return size_bytes_; }

    Buffer allocate(Backend& be) const {
        Buffer buffer = be.allocate(size_bytes_);
        for (size_t i = 0; i < tensors_.size(); ++i) {
            Tensor& tensor = *tensors_[i];
            tensor.memory = buffer.get();
            const size_t end =
                tensor.offset_bytes + dense_bytes(tensor.dtype, tensor.rows, tensor.cols);
            const size_t next =
                i + 1 < tensors_.size() ? tensors_[i + 1]->offset_bytes : size_bytes_;
            buffer->poison(end, next - end);
        }
        return buffer;
    }

  private:
    static constexpr size_t kAlignment = 256;  // alignment that every GPU accepts for a bound range
    size_t size_bytes_ = 0;
    std::vector<Tensor*> tensors_;
};

}  // namespace aerie
