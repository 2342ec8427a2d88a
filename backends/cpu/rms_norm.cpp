// RMS norm of one row.
#include "cpu/isa_kernels.h"
#include "cpu/vector_math.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// The sum of squares in 128 virtual lanes, which are then halved; element i is in lane i % 128.
// There are so many lanes that a GPU can divide the work, too.
float sum_of_squares(const float* x, int count) {
    constexpr int kVectors = 8;
    F32x16 lanes[kVectors];
    for (F32x16& lane : lanes) lane = splat(0.0f);
    int i = 0;
    for (; i + kVectors * kLanes <= count; i += kVectors * kLanes)
        for (int j = 0; j < kVectors; ++j) {
            const F32x16 v = load(x + i + j * kLanes);
            lanes[j] = lanes[j] + v * v;
        }
    for_lanes(count - i, [&](int rest, int n) {
        const F32x16 v = load_some(x + i + rest, n);
        lanes[rest / kLanes] = lanes[rest / kLanes] + v * v;
    });
    for (int half = kVectors / 2; half > 0; half /= 2)
        for (int j = 0; j < half; ++j) lanes[j] = lanes[j] + lanes[j + half];
    return sum(lanes[0]);
}

}  // namespace

void rms_norm(float* out, const float* x, const float* weight, int count, float epsilon) {
    // 1 / count is a constant of the model; GPUs get it from the host.
    const float mean = sum_of_squares(x, count) * (1.0f / float(count));
    const F32x16 scale = inverse_sqrt(splat(mean + epsilon));
    for_lanes(count, [&](int i, int n) {
        store_some(out + i, (load_some(x + i, n) * scale) * load_some(weight + i, n), n);
    });
}

}  // namespace aerie::cpu::AERIE_ISA
