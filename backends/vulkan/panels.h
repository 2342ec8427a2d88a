// How the elements of a weight lie on the device: in strips of 32 output rows.
//
// A strip is a sequence of panels. A row has of a panel 16 bytes of floats (4 or 8 elements of k;
// beyond the row's end zeros) or 16 elements of f16, or a block of a quantised type, bit for bit as
// large as in files. The bytes of a block are cut into quads of 16, the rest into words, and what
// is left is one f16; each piece lies beside those of the other rows, so that neighbours read
// neighbours. Floats lie in one piece, beside those of the other rows.
//
// A block in codes of 8 bits is these, and its scale. Other codes are q + offset, which is not
// negative; their blocks are in words:
//   the low nibbles of each group of 32: elements 4j .. 4j + 3 are the low ones of word j of four,
//   elements 4j + 16 .. 4j + 19 the high ones;
//   the high bits of each group: a word where they are one, whose byte i has in bit j those of
//   element 4j + i; or two words of two bits each, for a half of the group;
//   the scales: an f16 scale; or an f16 scale and least value, and in K types behind these, each in
//   the nibbles of a word, a group's four low bits of the whole scales, of the whole least values,
//   and two high bits of both; or the whole scales of halves in bytes, then an f16 scale.
#pragma once

#include <cstddef>

#include "core/dtype.h"

namespace aerie::vulkan {

constexpr int kStripRows = 32;

// Sizes of a strip of some type.
struct StripLayout {
    int panel_elements;  // of k
    int panel_bytes;     // of a row
    int panels;

    size_t strip_bytes() const { return size_t(panels) * size_t(panel_bytes) * kStripRows; }
};
StripLayout strip_layout(DType type, int cols);

// Puts a row of this type into a lane of a strip, which was zeros.
void put_row(std::byte* strip, int lane, const std::byte* row, DType type, int cols);

}  // namespace aerie::vulkan
