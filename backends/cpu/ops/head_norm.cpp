// Op HeadNorm: RMS norm of each head, one row at a time.
#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

template <>
void CpuBackend::execute(const HeadNorm& op) {
    FloatEnvironment environment;
    const AttentionShape& shape = op.shape;
    pool_.run(op.qkv.rows, 2.0 * op.qkv.cols, [&](int first, int last, int) {
        for (int r = first; r < last; ++r)
            for (int head = 0; head < shape.heads + shape.kv_heads; ++head) {
                float* x = row_f32(op.qkv, r) + head * shape.head_dim;
                const Tensor& weight = head < shape.heads ? op.q_weight : op.k_weight;
                kernels_.rms_norm(x, x, row_f32(weight, 0), shape.head_dim, op.epsilon);
            }
    });
}

}  // namespace aerie::cpu
