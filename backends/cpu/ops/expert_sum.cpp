// Op ExpertSum: sums the outputs of a row's experts, choice by choice, one row at a time.
#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

template <>
void CpuBackend::execute(const ExpertSum& op) {
    FloatEnvironment environment;
    const int k = op.weights.cols;
    pool_.run(op.out.rows, double(k) * op.out.cols, [&](int first, int last, int) {
        for (int r = first; r < last; ++r) {
            const float* weights = row_f32(op.weights, r);
            const float* choices = row_f32(op.x, r * k);
            const size_t stride = size_t(op.x.row_stride);
            float* out = row_f32(op.out, r);
            for (int c = 0; c < op.out.cols; ++c) {
                float sum = weights[0] * choices[c];
                for (int i = 1; i < k; ++i)
                    sum = sum + weights[i] * choices[size_t(i) * stride + size_t(c)];
                out[c] = op.accumulate == Accumulate::yes ? out[c] + sum : sum;
            }
        }
    });
}

}  // namespace aerie::cpu
