// The part of a layer after attention: a dense FFN, or experts (model/experts.h).
#pragma once

#include "backend/backend.h"

namespace aerie {

struct Activations;

// Where attention or the FFN of a layer puts its result: added to the tensor, or in its place.
struct SublayerOutput {
    Tensor tensor;  // F32
    Accumulate accumulate;
};

class Ffn {
  public:
    virtual ~Ffn() = default;
    // The input's place in `scratch`, in the type that is wanted, and the weights that consume it
    // directly as RmsNorm's output.
    virtual Tensor input_in(const Backend& be, Tensor scratch, int rows) const = 0;
    virtual Consumers consumers() const = 0;
    // `out` has [M, hidden].
    virtual void run(Backend& be, const Activations& scratch, SublayerOutput out, Tensor input,
                     int layer) const = 0;
};

}  // namespace aerie
