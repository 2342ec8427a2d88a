// Sampling noise for the positions that a cycle chooses for. Rows are made only when they are asked
// for.
#pragma once

#include <cstdint>

#include "backend/backend.h"

namespace aerie {

class NoiseRows {
  public:
    NoiseRows() = default;
    // The rows live in this memory: F32 [depths, vocab], I32 [1, depths] and F32 [1, vocab].
    NoiseRows(Tensor noise, Tensor positions, Tensor copy)
        : noise_(noise), positions_(positions), copy_(copy) {}

    // Begins a cycle: row d belongs to position first_position + d.
    void begin(uint64_t seed, int first_position) {
        seed_ = seed;
        first_position_ = first_position;
        made_ = 0;
    }
    // F32 [count, vocab]; row d serves choices below a node of depth d. Rows that this cycle has
    // already made are kept.
    Tensor rows(Backend& be, int count);
    // F32 [1, vocab]: row d, always at the same address if the device records passes.
    Tensor row(Backend& be, int d);

  private:
    Tensor noise_, positions_, copy_;
    uint64_t seed_ = 0;
    int first_position_ = 0, made_ = 0;
};

}  // namespace aerie
