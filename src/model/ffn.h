// What follows attention in a layer: dense, or experts (model/experts.h).
#pragma once

#include "backend/backend.h"

namespace aerie {

struct Activations;

class Ffn {
  public:
    virtual ~Ffn() = default;
    // Where in such a room its input is to be, and who of its matmuls may have that as RmsNorm
    // leaves it.
    virtual Tensor input_in(const Backend& be, Tensor room, int rows) const = 0;
    virtual Readers readers() const = 0;
    // Adds to x [M, hidden].
    virtual void run(Backend& be, const Activations& scratch, Tensor x, Tensor input,
                     int layer) const = 0;
};

}  // namespace aerie
