// The instructions of backends/cpu/tiles.h in plain C++, for machines that lack them. Anything that
// the instructions leave undefined or fault at throws here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace aerie::cpu::AERIE_ISA {

constexpr int kTileCount = 8, kMaxTileRows = 16, kMaxRowBytes = 64;

struct TileShapes {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {};
    uint8_t rows[16] = {};
};

struct Tile {
    int rows = 0, row_bytes = 0;
    uint8_t bytes[kMaxTileRows][kMaxRowBytes] = {};
};
inline thread_local Tile tiles[kTileCount];
inline thread_local bool tiles_are_configured = false;

inline void tile_require(bool condition) {
    if (!condition) throw std::logic_error("no such tile, or not of this shape");
}

inline void tile_configure(const TileShapes& shapes) {
    tile_require(shapes.palette == 1 && shapes.start_row == 0);
    for (int i = 0; i < kTileCount; ++i) {
        tile_require(shapes.rows[i] <= kMaxTileRows && shapes.row_bytes[i] <= kMaxRowBytes);
        tiles[i] = {shapes.rows[i], shapes.row_bytes[i], {}};
    }
    tiles_are_configured = true;
}
inline void tile_release() {
    tiles_are_configured = false;
}

inline Tile& tile_at(int i) {
    tile_require(tiles_are_configured && tiles[i].rows > 0 && tiles[i].row_bytes > 0);
    return tiles[i];
}

template <int tile>
void tile_load(const void* from, size_t stride) {
    Tile& to = tile_at(tile);
    std::memset(to.bytes, 0, sizeof(to.bytes));
    for (int r = 0; r < to.rows; ++r)
        std::memcpy(to.bytes[r], static_cast<const char*>(from) + size_t(r) * stride,
                    size_t(to.row_bytes));
}
template <int tile>
void tile_store(void* to, size_t stride) {
    const Tile& from = tile_at(tile);
    for (int r = 0; r < from.rows; ++r)
        std::memcpy(static_cast<char*>(to) + size_t(r) * stride, from.bytes[r],
                    size_t(from.row_bytes));
}
template <int tile>
void tile_zero() {
    std::memset(tile_at(tile).bytes, 0, sizeof(Tile::bytes));
}

template <int sum, int a, int b>
void tile_add_dots() {
    Tile& to = tile_at(sum);
    const Tile &left = tile_at(a), &right = tile_at(b);
    tile_require(to.rows == left.rows && to.row_bytes == right.row_bytes &&
                 left.row_bytes == right.rows * 4);
    for (int m = 0; m < to.rows; ++m)
        for (int n = 0; n < to.row_bytes / 4; ++n) {
            int32_t value;
            std::memcpy(&value, to.bytes[m] + n * 4, 4);
            for (int k = 0; k < left.row_bytes; ++k)
                value += int(int8_t(left.bytes[m][k])) * int8_t(right.bytes[k / 4][n * 4 + k % 4]);
            std::memcpy(to.bytes[m] + n * 4, &value, 4);
        }
}

}  // namespace aerie::cpu::AERIE_ISA
