// The properties of a device by which kernels are chosen. No device needs to be open for this, so
// tests can pretend any.
#pragma once

#include "core/dtype.h"
#include "vulkan/cooperative.h"
#include "vulkan/instance.h"

namespace aerie::vulkan {

class Abilities {
  public:
    // `split`: invocations that share an output row of a matmul; 0: chosen by the kind of device.
    Abilities(Traits traits, const Matrices& matrices, bool allow_integer_dot, int split);

    const Traits& traits() const { return traits_; }
    bool integer_dot() const { return integer_dot_; }
    const Matrices& matrices() const { return matrices_; }
    // Shape of the cooperative matrices that multiply a weight of this type; zero: none do.
    MatrixShape matrix_shape(DType weight) const;
    int split() const { return split_; }
    // Invocations of a subgroup that load together what all of them need, and broadcast it; 0: each
    // invocation loads for itself.
    uint32_t fetch_lanes() const;
    // Whether shaders convert f16 by the instruction for it instead of integer code
    // (shaders/lib/half.glsl).
    bool reads_halves() const;

  private:
    Traits traits_;
    Matrices matrices_;
    bool integer_dot_;
    int split_;
};

}  // namespace aerie::vulkan
