// Op Add: the sum of two tensors, row by row.
#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

template <>
void CpuBackend::execute(const Add& op) {
    FloatEnvironment environment;
    pool_.run(op.out.rows, op.out.cols, [&](int first, int last, int) {
        for (int r = first; r < last; ++r)
            kernels_.add(row_f32(op.out, r), row_f32(op.a, r), row_f32(op.b, r), op.out.cols);
    });
}

}  // namespace aerie::cpu
