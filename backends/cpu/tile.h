// A tile of dot products with its accumulators in registers, for S = Q K^T of attention.
#pragma once

#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// R rows (cached keys) by C columns (queries), of a multiple of 16 elements. Lane j of a product
// takes the elements k with k mod 16 = j, in ascending order.
template <int R, int C>
struct Tile {
    Part lanes[kParts][C][R];

    // Computes one part of all lanes after the other, so that its accumulators stay in registers.
    template <class W>
    void run(const W* const (&rows)[R], const float* const (&columns)[C], int count) {
        for (int p = 0; p < kParts; ++p) {
            Part sums[C][R];
            for (auto& of_column : sums)
                for (Part& sum : of_column) sum = splat_part(0.0f);
            for (int k = p * kPartLanes; k < count; k += kLanes) {
                Part column[C];
                for (int c = 0; c < C; ++c) column[c] = load_part(columns[c] + k);
                for (int r = 0; r < R; ++r) {
                    const Part row = held(load_part(rows[r] + k));
                    for (int c = 0; c < C; ++c) sums[c][r] = sums[c][r] + row * column[c];
                }
            }
            for (int c = 0; c < C; ++c)
                for (int r = 0; r < R; ++r) lanes[p][c][r] = sums[c][r];
        }
    }

    // Adds up the lanes into out[c][r]. Always inlined: a call would send the accumulators through
    // memory.
    [[gnu::always_inline]] void sums(float (&out)[C][R]) const {
        constexpr int kCells = R * C;
        F32x16 cells[kCells];
        for (int i = 0; i < kCells; ++i) {
            Part parts[kParts];
            for (int p = 0; p < kParts; ++p) parts[p] = lanes[p][i / R][i % R];
            cells[i] = join(parts);
        }
        sum_all<kCells>(&out[0][0], cells);
    }
};

// Rows of a tile with so many columns, a divisor of 64: as many as the registers hold.
constexpr int tile_rows(int columns) {
    if (kRegisters == 32) return columns <= 3 ? 8 : 4;
    if (kParts == 1) return columns == 1 ? 4 : 2;
    return columns == 1 ? 8 : columns <= 3 ? 4 : 2;
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
