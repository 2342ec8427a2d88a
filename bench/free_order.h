// Fast matrix products with sums in no fixed order, with which bench/exactness.cpp compares ours.
// out[c * stride + r] of the rows [first, last) of w [rows, inner] and the columns of x [columns,
// inner]. Compiled for the machine that builds.
#pragma once

#include <cstdint>

#include "core/quant.h"

namespace aerie::free_order {

struct Task {
    float* out;
    int stride;  // stride of out: rows of w
    int inner, columns;
    int first, last;  // rows of w
};

void multiply(const Task& task, const float* w, const float* x);
void multiply(const Task& task, const uint16_t* w, const float* x);  // f16
void multiply(const Task& task, const BlockQ8_0* w, const BlockI8G32* x);

// Converts rows to floats, for a library that multiplies only those.
void widen(float* to, const uint16_t* w, int64_t count);
void widen(float* to, const BlockQ8_0* w, int64_t count);

}  // namespace aerie::free_order
