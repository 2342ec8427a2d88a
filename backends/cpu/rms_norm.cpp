// One row over its root mean square, times a weight.
#include "cpu/isa_kernels.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {

void rms_norm(float* out, const float* x, const float* weight, int count, float epsilon) {
    F32x16 squares = splat(0.0f);
    for_lanes(count, [&](int i, int n) {
        const F32x16 v = load_some(x + i, n);
        squares = fma(v, v, squares);
    });
    const float mean = sum(squares) / float(count);
    const F32x16 scale = splat(1.0f / __builtin_sqrtf(mean + epsilon));
    for_lanes(count, [&](int i, int n) {
        store_some(out + i, (load_some(x + i, n) * scale) * load_some(weight + i, n), n);
    });
}

}  // namespace aerie::cpu::AERIE_ISA
