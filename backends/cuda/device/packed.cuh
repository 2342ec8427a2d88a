// Where the elements of a weight lie on the device: in the order in which the lanes of a warp take
// them as the 16 x K tiles of a matrix instruction (see mma in ptx.cuh), so that every load is 16
// bytes a lane, one lane after the other.
//   F16, BF16   tiles of 16 rows x 16 columns, 512 bytes
//   Q8_0        blocks of 16 rows x 4 groups: 4 tiles of 512 bytes, then 128 bytes of scales
//   Q4_0        the same with 2 x 512 bytes: a lane's 16 bytes are two groups of 8 bytes; a byte
//               holds a step (-8 .. 7) of row g in its low half, of row g + 8 in its high one
//   F32         strips of 32 rows: for each column those of all its rows
// "Row" here is the place of a row among the stored ones: see RowOrder.
// Scales of a block: for rows g and g + 8 the f16 of group 0, then of group 1 ...: 16 bytes.
#pragma once

#include <cuda_runtime.h>

#include <type_traits>

#include "backend/backend.h"

namespace aerie::cuda {

constexpr int kTileRows = 16;
constexpr int kTokenTile = 8;  // columns of a matrix instruction
constexpr int kFloatTileCols = 16;
constexpr int kBlockGroups = 4;  // groups of a quantised block
constexpr int kScaleBytes = kBlockGroups * kTileRows * 2;
constexpr int kF32Rows = 32;

constexpr int tiles_of(int count, int tile) {
    return (count + tile - 1) / tile;
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

constexpr size_t quant_block_bytes(DType type) {
    return (type == DType::Q8_0 ? 2048 : 1024) + kScaleBytes;
}

constexpr size_t packed_bytes(DType type, int rows, int cols) {
    const size_t row_tiles = size_t(tiles_of(rows, kTileRows));
    if (type == DType::F32)
        return size_t(tiles_of(rows, kF32Rows)) * kF32Rows * size_t(cols) * sizeof(float);
    if (type == DType::F16 || type == DType::BF16)
        return row_tiles * size_t(tiles_of(cols, kFloatTileCols)) * 512;
    return row_tiles * size_t(tiles_of(cols, kGroup * kBlockGroups)) * quant_block_bytes(type);
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
    const size_t tile = size_t(row / kTileRows) * size_t(tiles_of(cols, kFloatTileCols)) +
                        size_t(col / kFloatTileCols);
    const int lane = r % 8 * 4 + k % 8 / 2, word = r / 8 + k / 8 * 2;
    return tile * 256 + size_t(lane * 8 + word * 2 + k % 2);
}

// The block of a group, in bytes.
__device__ inline size_t quant_block_place(DType type, int row, int group, int cols) {
    const size_t blocks = size_t(tiles_of(cols, kGroup * kBlockGroups));
    return (size_t(row / kTileRows) * blocks + size_t(group / kBlockGroups)) *
           quant_block_bytes(type);
}
// Within their block, in bytes.
__device__ inline int scale_place(DType type, int row, int group) {
    return int(quant_block_bytes(type)) - kScaleBytes + row % 8 * 16 +
           (group % kBlockGroups * 2 + row % kTileRows / 8) * 2;
}
__device__ inline int q8_place(int row, int group, int k) {
    const int lane = row % 8 * 4 + k % 16 / 4, word = row % kTileRows / 8 + k / 16 * 2;
    return group % kBlockGroups * 512 + lane * 16 + word * 4 + k % 4;
}
__device__ inline int q4_place(int row, int group, int k) {
    const int lane = row % 8 * 4 + k % 16 / 4, word = k / 16;
    return group % kBlockGroups / 2 * 512 + lane * 16 + group % 2 * 8 + word * 4 + k % 4;
}

}  // namespace aerie::cuda
