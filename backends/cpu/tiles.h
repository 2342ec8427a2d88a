// AMX: instructions for eight tile registers of up to 16 rows of 64 bytes. They are written in
// assembly, because compilers' intrinsics take only literals, and do not say that they read memory.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace aerie::cpu::AERIE_ISA {
namespace {

// The operand of tile_configure: the tiles' shapes.
struct alignas(64) TileShapes {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};

inline void tile_configure(const TileShapes& shapes) {
    asm volatile("ldtilecfg %0" : : "m"(shapes));
}
inline void tile_release() {
    asm volatile("tilerelease");
}

// Rows lie `stride` bytes apart.
template <int tile>
inline void tile_load(const void* from, size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
inline void tile_store(void* to, size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
inline void tile_zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}

// sum [m][n] += a [m][k] * b [k / 4][n][4], signed bytes to 32 bits.
template <int sum, int a, int b>
inline void tile_add_dots() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
