// How weights lie on the device: in the order in which the lanes of a warp take them as the 16 x K
// tiles of a matrix instruction (see mma in ptx.cuh), so that a warp loads 16 bytes per lane, one
// lane after the other.
//   F16, BF16   tiles of 16 rows x 16 columns, 512 bytes; columns are padded to whole K steps
//   quantised   blocks of 16 rows x 4 or 8 groups: see QuantLayout
//   F32         strips of 32 rows: for each column the elements of all 32 rows
// A "row" here is the number of a row in the order of storage: see RowOrder.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <type_traits>

#include "backend/backend.h"

namespace aerie::cuda {

constexpr int kTileRows = 16;
constexpr int kTokenTile = 8;  // columns of a matrix instruction's output
constexpr int kFloatTileCols = 16;
constexpr int kStepTiles = 2;  // tiles of kFloatTileCols columns in a K step of a matmul
constexpr int kF32Rows = 32;

constexpr int tiles_of(int count, int tile) {
    return (count + tile - 1) / tile;
}

// The tiles of 16 columns side by side in a matrix, including those that only fill the last K step.
constexpr int float_tiles(int cols) {
    return tiles_of(cols, kStepTiles * kFloatTileCols) * kStepTiles;
}

// The token tiles of the smallest kernel for so many tokens: there is one for 1, 2, 4 and 8.
constexpr int token_tiles(int tokens) {
    return tokens <= 8 ? 1 : tokens <= 16 ? 2 : tokens <= 32 ? 4 : 8;
}
// Calls choose(count) with the result of token_tiles() as a constant.
template <class Choose>
auto with_token_tiles(int tiles, const Choose& choose) {
    return tiles == 1   ? choose(std::integral_constant<int, 1>())
           : tiles == 2 ? choose(std::integral_constant<int, 2>())
           : tiles == 4 ? choose(std::integral_constant<int, 4>())
                        : choose(std::integral_constant<int, 8>());
}

// The order into which activations have to be packed before a matmul reads them; none: it reads
// them as they are.
enum class Packing { none, f16, bf16 };
constexpr Packing packing_of(DType weight) {
    return weight == DType::F16    ? Packing::f16
           : weight == DType::BF16 ? Packing::bf16
                                   : Packing::none;
}

// How the scales of a block are stored, in words of 16 bytes.
enum class Scales {
    of_groups,         // an f16 per group: for rows g and g + 8 of group 0, then of group 1 ...
    leasts_of_groups,  // the same, and then mins in the same way
    six_bits,          // for each row the first 16 bytes of its BlockQ4_K, or BlockQ5_K
    // For each row the 16 integer scales of its BlockQ6_K, and then its f16 scale: those of rows g
    // and g + 8 side by side.
    of_halves,
};

constexpr int kStepGroups = 4;  // groups of a quantised weight in a K step of a matmul

// How a quantised type lies in its blocks: for every four groups the low bits of the quantised
// values, then their high bits; at the end the scales of all groups. Quantised values are in two's
// complement, but in types with mins they are unsigned. For each group a lane has four words of a
// matrix instruction, each of four values:
//   8 bits: the four words
//   4 bits: 8 bytes, of two groups side by side; words 0 and 2 in the low nibbles, 1 and 3 in the
//   high ones
//   high bits: those of a word's four values at one place of four bytes, those of the next word at
//   the next place
struct QuantLayout {
    int groups = 0;  // groups of a block; 0: the type is not stored
    int low_bits = 0, high_bits = 0;
    Scales scales = Scales::of_groups;

    constexpr bool has_least() const {
        return scales == Scales::leasts_of_groups || scales == Scales::six_bits;
    }
    constexpr int bits() const { return low_bits + high_bits; }

    // Sizes for a lane and four groups.
    constexpr int code_words() const { return kStepGroups * low_bits / 8; }
    constexpr int high_bytes() const { return kStepGroups * 2 * high_bits; }
    // Offsets and sizes in bytes within a block of 16 rows.
    constexpr int high_at() const { return code_words() * 512; }
    constexpr int step_bytes() const { return high_at() + high_bytes() * 32; }
    constexpr int scales_at() const { return groups / kStepGroups * step_bytes(); }
    constexpr int scale_bytes() const {
        return scales == Scales::of_groups ? 128 : scales == Scales::of_halves ? 288 : 256;
    }
    constexpr int bytes() const { return scales_at() + scale_bytes(); }
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

// The rows that a tile of 16 holds: its rows g and g + 8 are rows t * step + g of the matrix and
// `distance` further, for tile t, if the former is below `end`. In a paired weight these are the
// same row of gate and of up, so that one lane has both.
struct RowOrder {
    int step = kTileRows, distance = kTileRows / 2, end = 0;

    static RowOrder plain(int rows) { return {kTileRows, kTileRows / 2, rows}; }
    static RowOrder paired(int rows) { return {kTileRows / 2, rows / 2, rows / 2}; }
    bool is_paired() const { return step < kTileRows; }

    __host__ __device__ int first_row(int row) const { return row < end ? row : row - distance; }
    // The number of a row in the order of storage.
    __device__ int place(int row) const {
        const int first = first_row(row);
        return first / step * kTileRows + first % step + (row < end ? 0 : kTileRows / 2);
    }
    // The row with this number in the order of storage; -1: none.
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

// The index of an F16 or BF16 element, in 16-bit elements.
__device__ inline size_t float_place(int row, int col, int cols) {
    const int r = row % kTileRows, k = col % kFloatTileCols;
    const size_t tile =
        size_t(row / kTileRows) * size_t(float_tiles(cols)) + size_t(col / kFloatTileCols);
    const int lane = r % 8 * 4 + k % 8 / 2, word = r / 8 + k / 8 * 2;
    return tile * 256 + size_t(lane * 8 + word * 2 + k % 2);
}

// The byte offset of the block that has a group.
__device__ inline size_t quant_block_place(const QuantLayout& layout, int row, int group,
                                           int cols) {
    const size_t blocks = size_t(tiles_of(cols, kGroup * layout.groups));
    return (size_t(row / kTileRows) * blocks + size_t(group / layout.groups)) *
           size_t(layout.bytes());
}

// The place of some bits in a block.
struct BitsPlace {
    int byte, shift;
};
// The lane that takes a quantised value (code) of a group, and its word for it: chosen so that the
// lane's two words of activations lie side by side, except in types (of_halves) in which the two
// halves of a group are multiplied one by one.
struct CodePlace {
    int lane, word;
};
__device__ inline CodePlace code_place(const QuantLayout& layout, int row, int k) {
    const int of_row = row % 8 * 4, of_word = row % kTileRows / 8;
    if (layout.scales == Scales::of_halves) return {of_row + k % 16 / 4, of_word + k / 16 * 2};
    return {of_row + k / 8, of_word + k / 4 % 2 * 2};
}
// The low bits of a quantised value; `group` counts from the first of the block.
__device__ inline BitsPlace low_bits_at(const QuantLayout& layout, int row, int group, int k) {
    const auto [lane, word] = code_place(layout, row, k);
    const int step = group / kStepGroups * layout.step_bytes(), of_step = group % kStepGroups;
    if (layout.low_bits == 8) return {step + of_step * 512 + lane * 16 + word * 4 + k % 4, 0};
    const int bytes = step + of_step / 2 * 512 + lane * 16 + of_step % 2 * 8;
    return {bytes + word / 2 * 4 + k % 4, word % 2 * 4};
}
__device__ inline BitsPlace high_bits_at(const QuantLayout& layout, int row, int group, int k) {
    const auto [lane, word] = code_place(layout, row, k);
    const int step = group / kStepGroups * layout.step_bytes() + layout.high_at();
    const int place = group % kStepGroups * 4 + word, places = 8 / layout.high_bits;
    const int bytes = step + lane * layout.high_bytes() + place / places * 4;
    return {bytes + k % 4, place % places * layout.high_bits};
}
constexpr int kMinBytes = kTileRows * 8;  // the mins of groups lie behind their scales
// The byte offset of the f16 scale of a group, or of a row's whole block.
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
// The byte offset of a row's 16 bytes, if the scales have 16 bytes per row.
__device__ inline int row_scales_place(const QuantLayout& layout, int row) {
    return layout.scales_at() + row % kTileRows * 16;
}

}  // namespace aerie::cuda
