// Unpacks panels of any layout to bytes and floats, as the dot products read them.
#pragma once

#include "core/quant_blocks.h"
#include "cpu/simd.h"
#include "cpu/strip_layout.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr int kSteps = 8;  // steps in a panel, of four elements each
constexpr int kStepBytes = 64;
constexpr int kPanelBytes = kSteps * kStepBytes;

// The scales and mins of a group. Fields that its layout does not have are not set.
struct PanelScales {
    float scale[kStripRows], least[kStripRows];
    float whole[2][kStripRows], whole_least[2][kStripRows];  // [half]; [0] alone if a group is one
                                                             // piece
};

// A whole step, in words of 64 bits. After a shift a mask removes the bits that crossed into
// another byte. The compiler uses what the instruction set has. Functions take a step by reference,
// because the instruction set decides how a value would be passed.
using Step = uint64_t __attribute__((vector_size(kStepBytes)));
constexpr uint64_t kEveryByte = 0x0101010101010101;

inline void load(Step& to, const uint8_t* step) {
    __builtin_memcpy(&to, step, sizeof(to));
}
inline void store(uint8_t* to, const Step& step) {
    __builtin_memcpy(to, &step, sizeof(step));
}

// The 64 bytes in which several steps have bits: get() takes `bits` bits at `shift` of each byte.
struct SharedBits {
    SharedBits(const uint8_t* codes) { load(all, codes); }
    void get(Step& to, int shift, int bits) const {
        to = all >> shift & kEveryByte * ((uint64_t(1) << bits) - 1);
    }
    Step all;
};

// Unpacks a panel of nibbles; high(step, s) adds the bits above them, if there are any.
template <class High>
inline void read_nibbles(uint8_t* bytes, const uint8_t* codes, const High& high) {
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; s += 2, codes += kStepBytes) {
        const SharedBits both(codes);
#pragma GCC unroll 2
        for (int i = s; i < s + 2; ++i) {
            Step step;
            both.get(step, i % 2 * 4, 4);
            high(step, i);
            store(bytes + i * kStepBytes, step);
        }
    }
}

inline void read_five_bits(uint8_t* bytes, const uint8_t* codes) {
    const SharedBits fifth(codes + 4 * kStepBytes);
    read_nibbles(bytes, codes, [&](Step& step, int s) {
        Step bit;
        fifth.get(bit, s, 1);
        step |= bit << 4;
    });
}

inline void read_six_bits(uint8_t* bytes, const uint8_t* codes) {
    const SharedBits two[2] = {codes + 4 * kStepBytes, codes + 5 * kStepBytes};
    read_nibbles(bytes, codes, [&](Step& step, int s) {
        Step bits;
        two[s / 4].get(bits, s % 4 * 2, 2);
        step |= bits << 4;
    });
}

inline void read_two_bits(uint8_t* bytes, const uint8_t* codes) {
    const SharedBits four[2] = {codes, codes + kStepBytes};
#pragma GCC unroll 8
    for (int s = 0; s < kSteps; ++s) {
        Step step;
        four[s / 4].get(step, s % 4 * 2, 2);
        store(bytes + s * kStepBytes, step);
    }
}

// Returns the codes of a group as dot products read them: as they are stored, or as bytes in
// `room`.
template <Codes kind>
inline const uint8_t* read_codes(uint8_t* room, const uint8_t* codes) {
    switch (kind) {
        case Codes::bytes:
        case Codes::nibbles:
            return codes;
        case Codes::five_bits:
            read_five_bits(room, codes);
            break;
        case Codes::six_bits:
            read_six_bits(room, codes);
            break;
        case Codes::two_bits:
            read_two_bits(room, codes);
            break;
        case Codes::steps_of_4:
            read_nibbles(room, codes, [](Step&, int) {});
            for (int s = 0; s < kSteps; ++s) look_up(room + s * kStepBytes, kIq4Steps);
            break;
    }
    return room;
}

// Integer scales of sixteen rows, a byte each.
using Whole = uint64_t __attribute__((vector_size(kStripRows)));

inline void put_whole(float* to, const Whole& bytes) {
    store(to, load_i8(&bytes));
}

inline void read_nibble_scales(float* scale, float* least, const uint8_t* from) {
    Whole both;
    __builtin_memcpy(&both, from, sizeof(both));
    put_whole(scale, both & 15 * kEveryByte);
    put_whole(least, both >> 4 & 15 * kEveryByte);
}

inline void read_six_bit_scales(float* scale, float* least, const uint8_t* from) {
    Whole low;
    uint64_t rows;
    __builtin_memcpy(&low, from, sizeof(low));
    __builtin_memcpy(&rows, from + kStripRows, sizeof(rows));
    const Whole high = {rows & 15 * kEveryByte, rows >> 4 & 15 * kEveryByte};
    put_whole(scale, (low & 15 * kEveryByte) | (high & 3 * kEveryByte) << 4);
    put_whole(least, (low >> 4 & 15 * kEveryByte) | (high & 12 * kEveryByte) << 2);
}

// Reads the scales and mins of one group of a unit.
template <DType type>
inline void read_scales(PanelScales& to, const uint8_t* unit, int group) {
    constexpr StripLayout layout = layout_of(type);
    store(to.scale, load_f16(unit + layout.scale_at()));
    if (layout.has_least()) store(to.least, load_f16(unit + layout.least_at()));
    const uint8_t* whole = unit + layout.whole_at(group);
    switch (layout.scales) {
        case Scales::one:
        case Scales::one_least:
            return;
        case Scales::whole:
            return store(to.whole[0], load_i8(whole));
        case Scales::whole_least:
            return read_six_bit_scales(to.whole[0], to.whole_least[0], whole);
        case Scales::halves:
            for (int half = 0; half < 2; ++half)
                store(to.whole[half], load_i8(whole + half * kStripRows));
            return;
        case Scales::halves_least:
            for (int half = 0; half < 2; ++half)
                read_nibble_scales(to.whole[half], to.whole_least[half], whole + half * kStripRows);
            return;
    }
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
