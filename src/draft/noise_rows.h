// Sampling noise of the positions that a cycle chooses for, made as far as it is asked for.
#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace aerie {

class NoiseRows {
  public:
    NoiseRows() = default;
    // In this memory: F32 [depths, vocab] and I32 [1, depths].
    NoiseRows(Tensor noise, Tensor positions) : noise_(noise), positions_(positions) {}

    // A new cycle: row d is for position first_position + d.
    void begin(uint64_t seed, int first_position) {
        seed_ = seed;
        first_position_ = first_position;
        made_ = 0;
    }
    // F32 [count, vocab]; row d is for choices below a node of depth d. Rows that this cycle has
    // made already are not made again.
    Tensor rows(Backend& be, int count);

  private:
    Tensor noise_, positions_;
    uint64_t seed_ = 0;
    int first_position_ = 0, made_ = 0;
};

}  // namespace aerie
