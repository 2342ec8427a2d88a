// What the matmuls and attention have in common: groups of columns of constant size, and the end of
// a strip.
#pragma once

#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// body(Constant<size>, column) with the size that is wanted, or the next multiple of `step`.
template <int most, int step, class Body>
inline void with_constant(int size, int column, const Body& body) {
    if constexpr (most > step)
        if (size <= most - step) return with_constant<most - step, step>(size, column, body);
    body(Constant<most>(), column);
}

// Groups of `most` columns, then one of what is left, to the next multiple of `step`.
template <int most, int step, class Body>
inline void for_full_columns(int columns, const Body& body) {
    int column = 0;
    for (; columns - column >= most; column += most) body(Constant<most>(), column);
    if (column < columns) with_constant<most, step>(columns - column, column, body);
}

// As few groups, of sizes that differ by one at most.
template <int most, class Body>
inline void for_even_columns(int columns, const Body& body) {
    const int groups = (columns + most - 1) / most;
    for (int g = 0; g < groups; ++g) {
        const int column = columns * g / groups;
        with_constant<most, 1>(columns * (g + 1) / groups - column, column, body);
    }
}

// The sums of a strip's rows (lanes) and all columns become outputs.
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
