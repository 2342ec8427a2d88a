// The layout of quantised weights in strips. All of it is constants, local to each source that
// includes it, because sources of every instruction set do.
#pragma once

#include "cpu/kernels.h"

namespace aerie::cpu {
namespace {

// A strip of quantised rows is a sequence of units. A unit is 32 inner elements of all its rows, or
// 256 in K types and IQ4_XS, and has for all sixteen rows:
//   the codes of each group of 32 elements (a panel);
//   the f16 scales, and behind them the f16 mins if there are any;
//   the integer scales of each group.
// Codes of 8 bits are signed; others are quantised value + offset, which is not negative. A panel
// has eight steps of four elements; the 64 bytes of a step are [row][element].
enum class Codes : uint8_t {
    bytes,       // 8 x 64 bytes, signed
    nibbles,     // 4 x 64 bytes: one step in the low nibbles, the next in the high ones
    five_bits,   // nibbles, then 64 bytes of fifth bits: bit s is of step s
    six_bits,    // nibbles, then 2 x 64 bytes of two more bits, for four steps each
    two_bits,    // 2 x 64 bytes, for four steps each
    steps_of_4,  // nibbles that are indices into kIq4Steps
};
// The integer scales by which a group's dot products are multiplied, beside the unit's f16 scale;
// see kSumPart (core/quant.h).
enum class Scales : uint8_t {
    one,           // none
    one_least,     // none; the unit's min counts once
    whole,         // int8 [row]
    whole_least,   // 6-bit scale and min: [row] low nibbles of both, then in 8 bytes their high
                   // bits, those of row r and of row r + 8 to a byte
    halves,        // int8 [half of the group][row]
    halves_least,  // [half of the group][row] nibbles of scale and min
};

struct StripLayout {
    Codes codes;
    Scales scales;
    int offset = 0;
    bool is_super = true;  // units of 256 elements

    constexpr bool has_least() const {
        return scales == Scales::one_least || scales == Scales::whole_least ||
               scales == Scales::halves_least;
    }
    constexpr bool in_halves() const {
        return scales == Scales::halves || scales == Scales::halves_least;
    }
    constexpr int groups() const { return is_super ? 8 : 1; }  // groups per unit
    constexpr size_t code_bytes() const {                      // bytes per group
        switch (codes) {
            case Codes::bytes:
                return 8 * 64;
            case Codes::nibbles:
            case Codes::steps_of_4:
                return 4 * 64;
            case Codes::five_bits:
                return 5 * 64;
            case Codes::six_bits:
                return 6 * 64;
            case Codes::two_bits:
                return 2 * 64;
        }
        return 0;
    }
    constexpr size_t whole_bytes() const {  // bytes per group
        switch (scales) {
            case Scales::one:
            case Scales::one_least:
                return 0;
            case Scales::whole:
                return kStripRows;
            case Scales::whole_least:
                return kStripRows + kStripRows / 2;
            case Scales::halves:
            case Scales::halves_least:
                return 2 * kStripRows;
        }
        return 0;
    }
    constexpr size_t scale_at() const { return size_t(groups()) * code_bytes(); }
    constexpr size_t least_at() const { return scale_at() + kStripRows * sizeof(Half); }
    constexpr size_t whole_at(int group) const {
        return scale_at() + (has_least() ? 2 : 1) * kStripRows * sizeof(Half) +
               size_t(group) * whole_bytes();
    }
    // Units of 256 elements are padded to whole cache lines.
    constexpr size_t unit_bytes() const {
        const size_t bytes = whole_at(groups());
        return is_super ? (bytes + 63) / 64 * 64 : bytes;
    }
    constexpr size_t group_bytes() const { return unit_bytes() / size_t(groups()); }
};

// The layout of a quantised type of weights.
constexpr StripLayout layout_of(DType type) {
    switch (type) {
        case DType::Q4_0:
            return {Codes::nibbles, Scales::one, 8, false};
        case DType::Q4_1:
            return {Codes::nibbles, Scales::one_least, 0, false};
        case DType::Q5_0:
            return {Codes::five_bits, Scales::one, 16, false};
        case DType::Q5_1:
            return {Codes::five_bits, Scales::one_least, 0, false};
        case DType::IQ4_NL:
            return {Codes::steps_of_4, Scales::one, 0, false};
        case DType::Q2_K:
            return {Codes::two_bits, Scales::halves_least};
        case DType::Q3_K:
            return {Codes::nibbles, Scales::halves, 4};
        case DType::Q4_K:
            return {Codes::nibbles, Scales::whole_least};
        case DType::Q5_K:
            return {Codes::five_bits, Scales::whole_least};
        case DType::Q6_K:
            return {Codes::six_bits, Scales::halves, 32};
        case DType::IQ4_XS:
            return {Codes::steps_of_4, Scales::whole};
        default:
            return {Codes::bytes, Scales::one, 0, false};
    }
}

}  // namespace
}  // namespace aerie::cpu
