// Op Noise: the noise of each position, in blocks of tokens.
#include <algorithm>

#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

constexpr double kNoiseWork = 40;  // work per element, for Pool::run

template <>
void CpuBackend::execute(const Noise& op) {
    FloatEnvironment environment;
    constexpr int kBlock = 64;  // tokens of 16 counters
    const int blocks = (op.out.cols + kBlock - 1) / kBlock;
    const int32_t* position = row<int32_t>(op.positions, 0);
    pool_.run(op.out.rows * blocks, kNoiseWork * kBlock, [&](int first, int last, int) {
        for (int i = first; i < last;) {
            const int r = i / blocks, token = i % blocks * kBlock;
            const int end = std::min(last, (r + 1) * blocks);
            const int count = std::min((end - i) * kBlock, op.out.cols - token);
            kernels_.noise(row_f32(op.out, r) + token, op.seed, position[r], token, count);
            i = end;
        }
    });
}

}  // namespace aerie::cpu
