// Integer dot products of panels (16 rows x 32 elements, a byte each) with packed columns, and what
// is common to them on every instruction set.
#pragma once

#include "core/quant.h"
#include "cpu/columns.h"
#include "cpu/panels.h"
#include "cpu/simd.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

// What a panel is given as: its codes of four bits as they lie, or bytes, up to 63 or signed.
enum class Range { nibbles, six_bits, bytes };

// C columns of one group: [step][column] four int8, [column] f32 scale, then for both halves of the
// group [column] four bytes: where weights have least values the sum of the activations, as f32,
// else the i32 where a dot product begins, which makes up for the weights' offset. Of a group that
// is multiplied in one piece the first half's are those of all of it.
template <int C>
struct Packed {
    static constexpr int kScaleAt = kSteps * 4 * C, kHalvesAt = kScaleAt + 4 * C;

    template <class To>
    static To read(const uint8_t* packed, int at) {
        To value;
        __builtin_memcpy(&value, packed + at, sizeof(value));
        return value;
    }
    static int32_t four_bytes(const uint8_t* packed, int step, int column) {
        return read<int32_t>(packed, (step * C + column) * 4);
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
            __builtin_memcpy(packed + (s * C + column) * 4, group.q + s * 4, 4);
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

// Each has kColumns, how many columns are multiplied together; kSignedOffset, what signed bytes
// have too much in these dot products; and
//   dots<range, C, first, last>(out, panel, packed, half): of C columns and the steps from `first`
//   to `last`, as floats, which holds them exactly. They begin at zero for half = -1.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__)
#include "cpu/dots_vnni.h"
#elif defined(__AVX2__)
#include "cpu/dots_avx2.h"
#else
#include "cpu/dots_portable.h"
#endif
