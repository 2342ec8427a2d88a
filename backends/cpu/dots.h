// Integer dot products of a panel (16 rows x 32 elements) with packed columns, and what is common
// to them on every instruction set.
#pragma once

#include "core/quant.h"
#include "cpu/columns.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr int kSteps = 8;  // of four elements in a panel

// Packed columns whose scales follow their elements: [step][column] four int8, then [column] f32.
struct ScalesBehind {
    static constexpr int kScaleOffset = kSteps * 4;

    template <int C>
    static float scale(const uint8_t* packed, int column) {
        return reinterpret_cast<const float*>(packed + kScaleOffset * C)[column];
    }
    template <int C>
    static void put_elements(uint8_t* packed, int column, const BlockI8G32& group) {
        for (int s = 0; s < kSteps; ++s)
            __builtin_memcpy(packed + (s * C + column) * 4, group.q + s * 4, 4);
    }
    template <int C>
    static void put_scale(uint8_t* packed, int column, float scale) {
        reinterpret_cast<float*>(packed + kScaleOffset * C)[column] = scale;
    }
};

// The same, then [column] i32, where a dot product begins: its weights are unsigned, `offset` too
// large, so -offset * sum of the group.
template <int offset>
struct OffsetsBehind : ScalesBehind {
    static constexpr int kOffsetOffset = kScaleOffset + 4;

    template <int C>
    static void pack(uint8_t* to, int column, const BlockI8G32& group) {
        int32_t sum = 0;
        for (int8_t q : group.q) sum += q;
        put_elements<C>(to, column, group);
        put_scale<C>(to, column, group.scale);
        reinterpret_cast<int32_t*>(to + kOffsetOffset * C)[column] = -offset * sum;
    }
};

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA

// Each Dots<type> has, for C columns of one group:
//   multiply<C>: integer dot products of a panel with them, out [C][rows]
//   pack<C>: the group of one column to its place among them
//   scale<C>: that column's scale
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#include "cpu/dots_vnni.h"
#elif defined(__AVX2__)
#include "cpu/dots_avx2.h"
#else
#include "cpu/dots_portable.h"
#endif
