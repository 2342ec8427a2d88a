// Sampling noise of the positions that a cycle chooses for, made as far as it is asked for.
#pragma once

#include <cstdint>

#include "backend/tensor_plan.h"

namespace aerie {

class NoiseRows {
  public:
    void add_to(TensorPlan& plan, int depths, int vocab);

    // A new cycle: row d is for position first_position + d.
    void begin(uint64_t seed, int first_position);
    // F32 [count, vocab]; row d is for choices below a node of depth d. Rows that this cycle has
    // made already are not made again.
    Tensor rows(Backend& be, int count);

  private:
    Tensor noise_;      // [depths, vocab]
    Tensor positions_;  // [1, depths]
    uint64_t seed_ = 0;
    int first_position_ = 0, made_ = 0;
};

}  // namespace aerie
