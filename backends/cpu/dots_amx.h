// Dot products by AMX: a panel of bytes is a tile of weights, up to sixteen columns are another
// tile. Only whole groups are multiplied: with halves, a tile would have to be stored for each
// half, and storing takes most of the time.
#pragma once

#include "cpu/tiles.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr int kColumns = 16, kColumnStep = 4;
constexpr int kSignedOffset = 0;
constexpr bool reads_codes(Codes) {
    return false;
}

// The tile registers for sixteen columns, and those for the columns that are left.
template <bool is_full>
struct ColumnTiles {
    static constexpr int kSums = is_full ? 0 : 2, kGroup = is_full ? 1 : 3;
};
constexpr int kPanelTile = 4;

// Shapes the tiles for a task of `columns` columns; the destructor releases them.
class DotUnit {
  public:
    explicit DotUnit(int columns) {
        const int rest = padded_columns(columns) % kColumns;
        shape_columns(ColumnTiles<true>(), kColumns);
        shape_columns(ColumnTiles<false>(), rest > 0 ? rest : kColumns);
        shape(kPanelTile, kSteps, kStepBytes);
        tile_configure(shapes_);
    }
    ~DotUnit() { tile_release(); }
    DotUnit(const DotUnit&) = delete;
    DotUnit& operator=(const DotUnit&) = delete;

  private:
    void shape(int tile, int rows, int row_bytes) {
        shapes_.rows[tile] = uint8_t(rows);
        shapes_.row_bytes[tile] = uint16_t(row_bytes);
    }
    template <class Tiles>
    void shape_columns(Tiles, int rows) {
        shape(Tiles::kSums, rows, kStepBytes);
        shape(Tiles::kGroup, rows, kPanelElements);
    }
    TileShapes shapes_;
};

// The dot products stay in memory until they are read, because there are not enough registers.
template <int C>
struct Dots {
    alignas(64) int32_t of[C][kStripRows];
    [[gnu::always_inline]] F32x16 operator[](int c) const { return to_float(load(of[c])); }
};

// Returns a panel as signed bytes: as it is stored, or unpacked into `room`.
template <StripLayout layout>
inline const uint8_t* read_panel(uint8_t* room, const uint8_t* codes) {
    if constexpr (layout.codes == Codes::bytes) return codes;
    if constexpr (layout.codes == Codes::nibbles)
        read_nibbles(room, codes, [](Step&, int) {});
    else
        read_codes<layout.codes>(room, codes);
    using Bytes = uint8_t __attribute__((vector_size(kStepBytes)));
    if constexpr (layout.offset != 0)
        for (int s = 0; s < kSteps; ++s) {
            Bytes step;
            __builtin_memcpy(&step, room + s * kStepBytes, sizeof(step));
            step -= uint8_t(layout.offset);
            __builtin_memcpy(room + s * kStepBytes, &step, sizeof(step));
        }
    return room;
}

template <Form, int C, int first, int last>
inline void dots(Dots<C>& out, const uint8_t* panel, const uint8_t* packed, int) {
    using Tiles = ColumnTiles<C == kColumns>;
    static_assert(first == 0 && last == kSteps);
    tile_zero<Tiles::kSums>();
    tile_load<Tiles::kGroup>(packed, kPanelElements);
    tile_load<kPanelTile>(panel, kStepBytes);
    tile_add_dots<Tiles::kSums, Tiles::kGroup, kPanelTile>();
    tile_store<Tiles::kSums>(out.of, kStepBytes);
}

}  // namespace
}  // namespace aerie::cpu::AERIE_ISA
