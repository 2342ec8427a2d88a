// Fixed random inputs of ops, with their memory, for comparing the results of devices.
#pragma once

#include <cfenv>
#include <vector>

#include "ops/device_test.h"

namespace aerie {

// The matrix is made in the default floating-point environment, whatever the test has set.
inline reference::Matrix calm_random_matrix(int rows, int cols, unsigned seed, float deviation) {
    std::fenv_t before;
    std::fegetenv(&before);
    std::fesetenv(FE_DFL_ENV);
    reference::Matrix m = reference::random_matrix(rows, cols, seed, deviation);
    std::fesetenv(&before);
    return m;
}

class OpInputs {
  protected:
    explicit OpInputs(Backend& be) : be_(be) {}

    Tensor tensor(DType type, int rows, int cols) {
        memory_.push_back(be_.allocate(dense_bytes(type, rows, cols)));
        return dense(memory_.back().get(), type, rows, cols);
    }
    Tensor random(int rows, int cols, unsigned seed, float deviation = 1) {
        const Tensor t = tensor(DType::F32, rows, cols);
        be_.write(t, calm_random_matrix(rows, cols, seed, deviation).data.data());
        return t;
    }
    template <class T>
    Tensor blocks(const std::vector<T>& values) {
        const Tensor t = tensor(DType::I32, int(values.size()), int(sizeof(T) / sizeof(int32_t)));
        be_.write(t, values.data());
        return t;
    }

    Backend& be_;
    std::vector<Buffer> memory_;
};

}  // namespace aerie
