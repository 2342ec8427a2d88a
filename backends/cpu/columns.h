// Shared by the matmuls and attention: groups of columns of constant size, and the epilogue of a
// strip.
#pragma once

#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// Calls body(Constant<n>(), column), where n is `size`, rounded up to a multiple of `step`.
template <int most, int step, class Body>
inline void with_constant(int size, int column, const Body& body) {
    if constexpr (most > step)
        if (size <= most - step) return with_constant<most - step, step>(size, column, body);
    body(Constant<most>(), column);
}

// Calls body for groups of `most` columns, then for what is left, rounded up to a multiple of
// `step`.
template <int most, int step, class Body>
inline void for_full_columns(int columns, const Body& body) {
    int column = 0;
    for (; columns - column >= most; column += most) body(Constant<most>(), column);
    if (column < columns) with_constant<most, step>(columns - column, column, body);
}

// Calls body for as few groups as possible; their sizes differ by one at most.
template <int most, class Body>
inline void for_even_columns(int columns, const Body& body) {
    const int groups = (columns + most - 1) / most;
    for (int g = 0; g < groups; ++g) {
        const int column = columns * g / groups;
        with_constant<most, 1>(columns * (g + 1) / groups - column, column, body);
    }
}

// The epilogue of a strip: writes the sums of its rows (lanes) for all columns.
inline void write_strip(const MatmulOutput& to, const float (*sums)[kLanes], int row, int rows,
                        int columns) {
    const int count = rows - row < kStripRows ? rows - row : kStripRows;
    const F32x16 bias = to.bias ? load_some(to.bias + row, count) : splat(0.0f);
    for (int c = 0; c < columns; ++c) {
        float* out = to.column(c) + row;
        F32x16 value = load(sums[c]);
        if (to.bias) value = value + bias;
        store_some(out, to.accumulate ? load_some(out, count) + value : value, count);
    }
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
