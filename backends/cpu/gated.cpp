// activation(gate) * up, and the sum of two rows.
#include "cpu/isa_kernels.h"
#include "cpu/vector_math.h"

namespace aerie::cpu::AERIE_ISA {

void gated(float* out, const float* gate, const float* up, int count, Activation activation) {
    const auto make = [&](auto activated) {
        for_lanes(count, [&](int i, int n) {
            store_some(out + i, activated(load_some(gate + i, n)) * load_some(up + i, n), n);
        });
    };
    switch (activation) {
        case Activation::silu:
            make([](F32x16 x) { return silu(x); });
    }
}

void add(float* out, const float* a, const float* b, int count) {
    for_lanes(count, [&](int i, int n) {
        store_some(out + i, load_some(a + i, n) + load_some(b + i, n), n);
    });
}

}  // namespace aerie::cpu::AERIE_ISA
