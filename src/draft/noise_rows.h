// Sampling noise of the positions that a cycle chooses for, made as far as it is asked for.
#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace aerie {

class NoiseRows {
  public:
    NoiseRows() = default;
    // In this memory: F32 [depths, vocab], I32 [1, depths] and F32 [1, vocab].
    NoiseRows(Tensor noise, Tensor positions, Tensor copy)
        : noise_(noise), positions_(positions), copy_(copy) {}

    // A new cycle: row d is for position first_position + d.
    void begin(uint64_t seed, int first_position) {
        seed_ = seed;
        first_position_ = first_position;
        made_ = 0;
    }
    // F32 [count, vocab]; row d is for choices below a node of depth d. Rows that this cycle has
    // made already are not made again.
    Tensor rows(Backend& be, int count);
    // F32 [1, vocab]: row d, always in the same place where passes are recorded.
    Tensor row(Backend& be, int d);

  private:
    Tensor noise_, positions_, copy_;
    uint64_t seed_ = 0;
    int first_position_ = 0, made_ = 0;
};

}  // namespace aerie
