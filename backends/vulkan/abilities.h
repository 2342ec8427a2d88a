// What kernels are chosen by: what a device reports, and what is used of it. No device need be open
// for it.
#pragma once

#include "core/dtype.h"
#include "vulkan/cooperative.h"
#include "vulkan/instance.h"

namespace aerie::vulkan {

class Abilities {
  public:
    // `split`: invocations that share a row of a matmul; 0: by the kind of the device.
    Abilities(Traits traits, const Matrices& matrices, bool allow_integer_dot, int split);

    const Traits& traits() const { return traits_; }
    bool integer_dot() const { return integer_dot_; }
    const Matrices& matrices() const { return matrices_; }
    // The shape of the matrices that multiply a weight of this type; zero: they do not.
    MatrixShape matrix_shape(DType weight) const;
    int split() const { return split_; }
    // Invocations of a subgroup that fetch together what all of them need; 0: each for itself.
    uint32_t fetch_lanes() const;
    // Whether shaders read f16 by the instruction for it, not by integer code.
    bool reads_halves() const;

  private:
    Traits traits_;
    Matrices matrices_;
    bool integer_dot_;
    int split_;
};

}  // namespace aerie::vulkan
