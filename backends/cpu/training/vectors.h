// Loops over a row that take most of a training's time outside the products: floats run through the
// vector kernels of this CPU, doubles, which only tests use, one by one.
#pragma once

#include <algorithm>
#include <cmath>

#include "cpu/isa.h"

namespace aerie::cpu {

inline const Kernels& training_kernels() {
    static const Kernels& chosen = kernels(choose_isa());
    return chosen;
}

// out[i] = exp((x[i] - shift) * scale); `out` may be `x`.
inline void exponentials(float* out, const float* x, float shift, float scale, int count) {
    training_kernels().exp_all(out, x, shift, scale, count);
}
inline void exponentials(double* out, const double* x, double shift, double scale, int count) {
    for (int i = 0; i < count; ++i) out[i] = std::exp((x[i] - shift) * scale);
}

// The index of the largest value, the first of equal ones. 0 if all are NaN.
inline int largest(const float* x, int count) {
    return std::max(0, training_kernels().argmax(x, count).id);
}
inline int largest(const double* x, int count) {
    return int(std::max_element(x, x + count) - x);
}

// The sum of term(i) for i in [0, count), in lanes, so that a compiler can use vectors.
template <class Term>
double sum_of(int count, const Term& term) {
    constexpr int kLanes = 8;
    double lanes[kLanes] = {};
    const int whole = count - count % kLanes;
    for (int i = 0; i < whole; i += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
    for (int i = whole; i < count; ++i) lanes[i - whole] += term(i);
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
           ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

}  // namespace aerie::cpu
