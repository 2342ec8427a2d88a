// A tile of dot products with its accumulators in registers, for S = Q K^T of attention.
#pragma once

#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// R rows (cached keys) by C columns (queries). Lane j of a product takes the elements k with k mod
// 16 = j, in ascending order. The loop takes one part of the lanes after the other, so that a
// loaded row or column is used from a register.
template <int R, int C>
struct Tile {
    Part lanes[kParts][C][R];

    F32x16 cell(int c, int r) const {
        Part parts[kParts];
        for (int p = 0; p < kParts; ++p) parts[p] = lanes[p][c][r];
        return join(parts);
    }
    void set(int c, int r, F32x16 value) {
        Part parts[kParts];
        split(parts, value);
        for (int p = 0; p < kParts; ++p) lanes[p][c][r] = parts[p];
    }
    void clear() {
        for (int c = 0; c < C; ++c)
            for (int r = 0; r < R; ++r) set(c, r, splat(0.0f));
    }

    // Adds the products of sixteen elements from k on.
    template <class W>
    void step(const W* const (&rows)[R], const float* const (&columns)[C], int k) {
        for (int p = 0; p < kParts; ++p) {
            Part row[R];
            for (int r = 0; r < R; ++r) row[r] = load_part(rows[r] + k + p * kPartLanes);
            for (int c = 0; c < C; ++c) {
                const Part column = held(load_part(columns[c] + k + p * kPartLanes));
                for (int r = 0; r < R; ++r) lanes[p][c][r] = lanes[p][c][r] + row[r] * column;
            }
        }
    }
    // Adds the products of the last n < 16 elements, from k on; the lanes beyond them multiply
    // zeros.
    template <class W>
    void tail(const W* const (&rows)[R], const float* const (&columns)[C], int k, int n) {
        W row_end[R][kLanes] = {};
        float column_end[C][kLanes] = {};
        const W* row_ends[R];
        const float* column_ends[C];
        for (int r = 0; r < R; ++r) {
            __builtin_memcpy(row_end[r], rows[r] + k, size_t(n) * sizeof(W));
            row_ends[r] = row_end[r];
        }
        for (int c = 0; c < C; ++c) {
            __builtin_memcpy(column_end[c], columns[c] + k, size_t(n) * sizeof(float));
            column_ends[c] = column_end[c];
        }
        step(row_ends, column_ends, 0);
    }
    template <class W>
    void run(const W* const (&rows)[R], const float* const (&columns)[C], int count) {
        int k = 0;
        for (; k + kLanes <= count; k += kLanes) step(rows, columns, k);
        if (k < count) tail(rows, columns, k, count - k);
    }

    // Adds up the lanes into out[c][r]. Always inlined: a call would send the accumulators through
    // memory.
    [[gnu::always_inline]] void sums(float (&out)[C][R]) const {
        constexpr int kCells = R * C;
        F32x16 cells[kCells];
        for (int i = 0; i < kCells; ++i) cells[i] = cell(i / R, i % R);
        int done = 0;
        for (; done + 4 <= kCells; done += 4) sum4(&out[0][0] + done, cells + done);
        for (; done < kCells; ++done) (&out[0][0])[done] = sum(cells[done]);
    }
};

// Rows of a tile with so many columns: as many as sixteen registers hold.
constexpr int tile_rows(int columns) {
    return columns == 1 ? 4 : 2;
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
