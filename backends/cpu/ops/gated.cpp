// Op Gated: activation(gate) * up of each row, on all threads.
#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

constexpr double kExpWork = 8;  // work per element, for Pool::run

template <>
void CpuBackend::execute(const Gated& op) {
    FloatEnvironment environment;
    make_rows(op.out, kExpWork * op.out.cols, [&](float* to, int r) {
        const float* gate = row_f32(op.gate_up, r);
        kernels_.gated(to, gate, gate + op.out.cols, op.out.cols, op.activation);
    });
}

}  // namespace aerie::cpu
