// Products of matrices in rows by cuBLAS, which is loaded where it is installed.
#pragma once

#include <memory>

#include "backend/training.h"
#include "cuda/queue.h"

namespace aerie::cuda {

class Cublas {
  public:
    virtual ~Cublas() = default;
    // The op multiply() of TrainingDevice, with shapes that fit and K = inner, in f32 without TF32.
    // The queue reports a failure.
    virtual void multiply(Product form, const Matrix& out, const Matrix& a, const Matrix& b,
                          int inner, bool accumulate) = 0;
};

// Null if no cuBLAS is installed. Throws Error if the one that is there cannot be used.
std::unique_ptr<Cublas> open_cublas(std::shared_ptr<Queue> queue);

}  // namespace aerie::cuda
