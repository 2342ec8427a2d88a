// Integer dot products of panels (16 rows x 32 elements, a byte each) with packed columns, and what
// is common to them on every instruction set.
#pragma once

#include "core/quant.h"
#include "cpu/columns.h"
#include "cpu/panels.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// The form in which a panel is given: its codes as they are stored, or bytes that are at most 63,
// or signed bytes.
enum class Form { nibbles, two_bits, five_bits, six_bits, small_bytes, signed_bytes };

#ifdef AERIE_TILES
constexpr bool kTiles = true;
#else
constexpr bool kTiles = false;
#endif

// `columns` rounded up to what the dot products take; the padding columns are all zero.
inline int padded_columns(int columns);

// The layout of C packed columns of one group: [step][column] of four int8, or [column][step] for
// tiles; [column] of an f32 scale; then for both halves of the group [column] of four bytes. If the
// weights have mins, these are the sum of the activations as f32, else the i32 where a dot product
// begins, which makes up for the weights' offset. In a group that is multiplied in one piece, the
// first half's bytes are for the whole group.
template <int C>
struct Packed {
    static constexpr int kScaleAt = kSteps * 4 * C, kHalvesAt = kScaleAt + 4 * C;

    template <class To>
    static To read(const uint8_t* packed, int at) {
        To value;
        __builtin_memcpy(&value, packed + at, sizeof(value));
        return value;
    }
    static constexpr int step_at(int step, int column) {
        return kTiles ? column * kPanelElements + step * 4 : (step * C + column) * 4;
    }
    static int32_t four_bytes(const uint8_t* packed, int step, int column) {
        return read<int32_t>(packed, step_at(step, column));
    }
    static float scale(const uint8_t* packed, int column) {
        return read<float>(packed, kScaleAt + 4 * column);
    }
    static int32_t begin(const uint8_t* packed, int half, int column) {
        return read<int32_t>(packed, kHalvesAt + 4 * (half * C + column));
    }
    static float sum(const uint8_t* packed, int half, int column) {
        return read<float>(packed, kHalvesAt + 4 * (half * C + column));
    }

    template <class Value>
    static void write(uint8_t* packed, int at, Value value) {
        __builtin_memcpy(packed + at, &value, sizeof(value));
    }
    static void put(uint8_t* packed, int column, const BlockI8G32& group, const StripLayout& layout,
                    int offset) {
        for (int s = 0; s < kSteps; ++s)
            __builtin_memcpy(packed + step_at(s, column), group.q + s * 4, 4);
        write(packed, kScaleAt + 4 * column, group.scale);
        for (int half = 0; half < 2; ++half) {
            const int at = kHalvesAt + 4 * (half * C + column);
            int32_t sum = group.sums[half];
            if (half == 0 && !layout.in_halves()) sum += group.sums[1];
            if (layout.has_least())
                write(packed, at, float(sum));
            else
                write(packed, at, -offset * sum);
        }
    }
};

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA

// Each of these files defines
//   kColumns: how many columns are multiplied together;
//   kSignedOffset: what is added to signed bytes in these dot products;
//   reads_codes(codes): whether codes that are not bytes are also multiplied as they are stored;
//   dots<form, C, first, last>(out, panel, packed, half): dot products of C columns over steps
//     [first, last), as floats, which hold them exactly. They begin at Packed::begin() of the half,
//     or at zero for half = -1.
#if defined(AERIE_TILES)
#include "cpu/dots_amx.h"
#elif defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#include "cpu/dots_vnni.h"
#elif defined(__AVX2__)
#include "cpu/dots_avx2.h"
#else
#include "cpu/dots_portable.h"
#endif

#ifndef AERIE_TILES
namespace aerie::cpu::AERIE_ISA {
namespace {

// Without tiles, groups of columns may have any size, nothing needs to be set up, and panels are
// read by read_codes().
constexpr int kColumnStep = 1;
struct DotUnit {
    explicit DotUnit(int) {}
};
template <int C>
using Dots = F32x16[C];
template <StripLayout layout>
inline const uint8_t* read_panel(uint8_t* room, const uint8_t* codes) {
    return read_codes<layout.codes>(room, codes);
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
#endif

namespace aerie::cpu::AERIE_ISA {
namespace {

inline int padded_columns(int columns) {
    return (columns + kColumnStep - 1) / kColumnStep * kColumnStep;
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
