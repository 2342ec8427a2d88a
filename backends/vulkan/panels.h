// The layout of a weight on the device: strips of 32 output rows.
//
// A strip is a sequence of panels. In a panel a row has 16 bytes of f32 or bf16 (4 or 8 elements of
// K; zeros beyond the row's end), or 16 elements of f16, or one block of a quantised type, with as
// many bytes as in files. A block's bytes are cut into quads of 16 bytes, then words, and what is
// left is one f16; a row's floats are one piece. Each piece lies beside the same piece of the other
// rows, so that neighbouring invocations read neighbouring addresses.
//
// A block of 8-bit codes has the codes, then the scale. Other codes are quantised value + offset,
// which is not negative. Their blocks consist of words:
//   the low nibbles of each group of 32, four words: word j has elements 4j .. 4j + 3 in its low
//     nibbles, elements 4j + 16 .. 4j + 19 in its high ones;
//   the high bits of each group: if a code has one, a word in which bit j of byte i belongs to
//     element 4j + i; if it has two, a word of two bits each for either half of the group;
//   the scales: an f16 scale; or an f16 scale and min, followed in K types by three words with a
//     nibble for each group: the four low bits of the integer scales, those of the integer mins,
//     and two high bits of both; or the int8 scales of half groups, then an f16 scale.
#pragma once

#include <cstddef>

#include "core/dtype.h"

namespace aerie::vulkan {

constexpr int kStripRows = 32;

// Sizes of a strip, for one type.
struct StripLayout {
    int panel_elements;  // elements of K
    int panel_bytes;     // bytes per row
    int panels;

    size_t strip_bytes() const { return size_t(panels) * size_t(panel_bytes) * kStripRows; }
};
StripLayout strip_layout(DType type, int cols);

// Writes a row of this type to lane `lane` of a strip, which was zeroed.
void put_row(std::byte* strip, int lane, const std::byte* row, DType type, int cols);

}  // namespace aerie::vulkan
