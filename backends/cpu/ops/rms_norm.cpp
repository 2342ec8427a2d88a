// Op RmsNorm: the norm of each row, on all threads.
#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

template <>
void CpuBackend::execute(const RmsNorm& op) {
    FloatEnvironment environment;
    make_rows(op.out, 2.0 * op.x.cols, [&](float* to, int r) {
        kernels_.rms_norm(to, row_f32(op.x, r), row_f32(op.weight, 0), op.x.cols, op.epsilon);
    });
}

}  // namespace aerie::cpu
