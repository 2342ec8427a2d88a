// Where the elements of a weight lie on the device: in the order in which the lanes of a warp take
// them as the 16 x K tiles of a matrix instruction (see mma in ptx.cuh), so that every load is 16
// bytes a lane, one lane after the other.
//   F16, BF16   tiles of 16 rows x 16 columns, 512 bytes; as many as whole steps of a matmul want
//   quantised   blocks of 16 rows x 4 or 8 groups: see QuantLayout
//   F32         strips of 32 rows: for each column those of all its rows
// "Row" here is the place of a row among the stored ones: see RowOrder.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "backend/backend.h"

namespace aerie::cuda {

constexpr int kTileRows = 16;
constexpr int kTokenTile = 8;  // columns of a matrix instruction
constexpr int kFloatTileCols = 16;
constexpr int kStepTiles = 4;  // of so many columns, in a step of a matmul
constexpr int kF32Rows = 32;

constexpr int tiles_of(int count, int tile) {
    return (count + tile - 1) / tile;
}

// Tiles of so many columns, those included that only fill the last step.
constexpr int float_tiles(int cols) {
    return tiles_of(cols, kStepTiles * kFloatTileCols) * kStepTiles;
}

// Groups of 8 tokens that a matmul kernel is made for: 1, 2, 4 or 8.
constexpr int token_tiles(int tokens) {
    return tokens <= 8 ? 1 : tokens <= 16 ? 2 : tokens <= 32 ? 4 : 8;
}
// choose(count) with what token_tiles gives as a constant.
template <class Choose>
auto with_token_tiles(int tiles, const Choose& choose) {
    return tiles == 1   ? choose(std::integral_constant<int, 1>())
           : tiles == 2 ? choose(std::integral_constant<int, 2>())
           : tiles == 4 ? choose(std::integral_constant<int, 4>())
                        : choose(std::integral_constant<int, 8>());
}

// In which order of its own a matmul reads its activations, into which they are packed before;
// none: as they are.
enum class Packing { none, groups, f16, bf16 };
constexpr Packing packing_of(DType weight, int tokens) {
    if (weight == DType::F16) return Packing::f16;
    if (weight == DType::BF16) return Packing::bf16;
    return is_quantised(weight) && token_tiles(tokens) > 1 ? Packing::groups : Packing::none;
}

// What is stored of the scales of a block, in words of 16 bytes.
enum class Scales {
    of_groups,         // an f16 a group: for rows g and g + 8 of group 0, then of group 1 ...
    leasts_of_groups,  // the same, and then least values the same way
    six_bits,          // for each row the first 16 bytes of its BlockQ4_K, or BlockQ5_K
    of_halves,  // for each row the 16 whole scales of its BlockQ6_K, and then its f16: those of
                // rows g and g + 8 side by side
};

// How a quantised type lies in its blocks: codes, then their high bits, then scales. Codes are in
// two's complement, but where there are least values. A lane has of each group four words of a
// matrix instruction, each four codes:
//   bytes: the four words
//   nibbles: 8 bytes, of two groups side by side; the first and the third word in low halves, the
//   others in high ones
//   high bits: those of four codes in one place of four bytes, of the next word in the next place
struct QuantLayout {
    int groups = 0;  // of a block; 0: the type is not stored
    int low_bits = 0, high_bits = 0;
    Scales scales = Scales::of_groups;

    constexpr bool has_least() const {
        return scales == Scales::leasts_of_groups || scales == Scales::six_bits;
    }
    constexpr int bits() const { return low_bits + high_bits; }

    constexpr int code_words() const { return groups * low_bits / 8; }        // of a lane
    constexpr int high_bytes() const { return groups * 2 * high_bits; }       // of a lane
    constexpr int high_words() const { return tiles_of(high_bytes(), 16); }   // that it reads
    constexpr int high_stride() const { return std::min(high_bytes(), 16); }  // of the lanes
    constexpr int scale_word() const { return code_words() + high_words(); }
    // All that a lane reads, some of them together with others.
    constexpr int words() const {
        return scale_word() + (scales == Scales::of_groups   ? 1
                               : scales == Scales::of_halves ? 3
                                                             : 2);
    }

    constexpr int high_at() const { return code_words() * 512; }
    constexpr int scales_at() const { return high_at() + high_bytes() * 32; }
    constexpr int bytes() const {
        return scales_at() + (scales == Scales::of_groups   ? 128
                              : scales == Scales::of_halves ? 288
                                                            : 256);
    }
    // Where a lane finds its words, in words of the block.
    constexpr int word_at(int word, int lane) const {
        if (word < code_words()) return word * 32 + lane;
        const int high = word - code_words(), scale = word - scale_word();
        if (scale < 0) return high_at() / 16 + (high_bytes() < 16 ? lane / 2 : high * 32 + lane);
        return scales_at() / 16 + scale * 8 + (scale == 2 ? lane / 16 : lane / 4);
    }
};

constexpr QuantLayout layout_of(DType type) {
    switch (type) {
        case DType::Q8_0:
            return {4, 8, 0, Scales::of_groups};
        case DType::Q4_0:
            return {4, 4, 0, Scales::of_groups};
        case DType::Q5_0:
            return {4, 4, 1, Scales::of_groups};
        case DType::Q5_1:
            return {4, 4, 1, Scales::leasts_of_groups};
        case DType::Q4_K:
            return {8, 4, 0, Scales::six_bits};
        case DType::Q5_K:
            return {8, 4, 1, Scales::six_bits};
        case DType::Q6_K:
            return {8, 4, 2, Scales::of_halves};
        default:
            return {};
    }
}

constexpr size_t packed_bytes(DType type, int rows, int cols) {
    const size_t row_tiles = size_t(tiles_of(rows, kTileRows));
    if (type == DType::F32)
        return size_t(tiles_of(rows, kF32Rows)) * kF32Rows * size_t(cols) * sizeof(float);
    if (type == DType::F16 || type == DType::BF16)
        return row_tiles * size_t(float_tiles(cols)) * 512;
    const QuantLayout layout = layout_of(type);
    return row_tiles * size_t(tiles_of(cols, kGroup * layout.groups)) * size_t(layout.bytes());
}

// Which rows a tile of 16 holds: rows g and g + 8 of tile t are t * step + g and `distance`
// further, where the former is below `end`. Of gate and up they are the same row of both: a lane
// has what belongs together.
struct RowOrder {
    int step = kTileRows, distance = kTileRows / 2, end = 0;

    static RowOrder plain(int rows) { return {kTileRows, kTileRows / 2, rows}; }
    static RowOrder paired(int rows) { return {kTileRows / 2, rows / 2, rows / 2}; }
    bool is_paired() const { return step < kTileRows; }

    __host__ __device__ int first_row(int row) const { return row < end ? row : row - distance; }
    // Where a row is stored.
    __device__ int place(int row) const {
        const int first = first_row(row);
        return first / step * kTileRows + first % step + (row < end ? 0 : kTileRows / 2);
    }
    // The row that is stored there; -1: none.
    __device__ int row(int place) const {
        const int first = place / kTileRows * step + place % (kTileRows / 2);
        if (first >= end) return -1;
        return place % kTileRows < kTileRows / 2 ? first : first + distance;
    }
};

__device__ inline size_t f32_place(int row, int col, int cols) {
    return (size_t(row / kF32Rows) * size_t(cols) + size_t(col)) * kF32Rows +
           size_t(row % kF32Rows);
}

// In 16-bit elements.
__device__ inline size_t float_place(int row, int col, int cols) {
    const int r = row % kTileRows, k = col % kFloatTileCols;
    const size_t tile =
        size_t(row / kTileRows) * size_t(float_tiles(cols)) + size_t(col / kFloatTileCols);
    const int lane = r % 8 * 4 + k % 8 / 2, word = r / 8 + k / 8 * 2;
    return tile * 256 + size_t(lane * 8 + word * 2 + k % 2);
}

// The block of a group, in bytes.
__device__ inline size_t quant_block_place(const QuantLayout& layout, int row, int group,
                                           int cols) {
    const size_t blocks = size_t(tiles_of(cols, kGroup * layout.groups));
    return (size_t(row / kTileRows) * blocks + size_t(group / layout.groups)) *
           size_t(layout.bytes());
}

// Bits of a block.
struct BitsPlace {
    int byte, shift;
};
// Those of a code, groups counted from the block's first.
__device__ inline BitsPlace low_bits_at(const QuantLayout& layout, int row, int group, int k) {
    const int lane = row % 8 * 4 + k % 16 / 4, word = row % kTileRows / 8 + k / 16 * 2;
    if (layout.low_bits == 8) return {group * 512 + lane * 16 + word * 4 + k % 4, 0};
    const int bytes = group / 2 * 512 + lane * 16 + group % 2 * 8;
    return {bytes + word / 2 * 4 + k % 4, word % 2 * 4};
}
__device__ inline BitsPlace high_bits_at(const QuantLayout& layout, int row, int group, int k) {
    const int lane = row % 8 * 4 + k % 16 / 4, word = row % kTileRows / 8 + k / 16 * 2;
    const int place = group * 4 + word, places = 8 / layout.high_bits, part = place / places;
    const int bytes = part / 4 * 512 + lane * layout.high_stride() + part % 4 * 4;
    return {layout.high_at() + bytes + k % 4, place % places * layout.high_bits};
}
constexpr int kLeastBytes = kTileRows * 8;  // least values of groups lie behind their scales
// The f16 scale of a group, or of the whole block.
__device__ inline int scale_place(const QuantLayout& layout, int row, int group) {
    const int pair = row % kTileRows / 8 * 2;
    switch (layout.scales) {
        case Scales::of_groups:
        case Scales::leasts_of_groups:
            return layout.scales_at() + row % 8 * 16 + group * 4 + pair;
        case Scales::six_bits:
            return layout.scales_at() + row % kTileRows * 16;
        case Scales::of_halves:
            return layout.scales_at() + kTileRows * 16 + row % 8 * 4 + pair;
    }
    return 0;
}
// The 16 bytes of a row that has so many.
__device__ inline int row_scales_place(const QuantLayout& layout, int row) {
    return layout.scales_at() + row % kTileRows * 16;
}

}  // namespace aerie::cuda
