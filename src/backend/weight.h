// Weights: matrices on a device whose rows may be stored in several types, and what they are made
// of.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/dtype.h"

namespace aerie {

// Rows of a matrix that are read as they are stored, so that a file is never in memory twice.
class RowSource {
  public:
    virtual ~RowSource() = default;
    // Rows [first, first + count), contiguous. Several threads call it at once. Throws Error.
    virtual void read(int first, int count, std::byte* out) const = 0;
};

// Host data of some rows of a weight, [rows, cols], contiguous. q, k and v arrive as three blocks.
struct WeightBlock {
    DType dtype = DType::F32;    // of the data
    DType stored = DType::F32;   // that the device is to keep the rows in
    const void* data = nullptr;  // any alignment; not used after upload_weight
    int rows = 0;
    int cols = 0;
    const RowSource* source = nullptr;  // of the data where `data` is null

    size_t row_bytes() const { return size_bytes(dtype, size_t(cols)); }
    // Some of the rows, in memory: where they are, or read into `room`.
    const std::byte* read(int first, int count, std::vector<std::byte>& room) const;
    void copy(int first, int count, std::byte* out) const;
};

// lookup: by embed only. gated: two blocks of equal rows, gate and up, that matmul_swiglu reads.
// experts: a stack of equal blocks, one of each expert, or several stacks one after the other, each
// stored in one type; expert_matmul reads of each stack one block at a time.
enum class WeightUse { multiply, gated, lookup, experts };

// Rows [first_row, first_row + rows) of a weight, stored in one type.
struct WeightSegment {
    DType dtype = DType::F32;
    int first_row = 0;
    int rows = 0;
};

// A matrix [rows, cols] on the device, in the backend's own layout; the right side of a matmul.
// Each of its outputs has the bits that it has where its segment is a weight of its own.
class Weight {
  public:
    // Blocks that follow each other and are stored in the same type make one segment. All have the
    // same columns.
    Weight(std::span<const WeightBlock> blocks, WeightUse use);
    virtual ~Weight() = default;

    int rows = 0;         // outputs
    int cols = 0;         // inputs
    int matrix_rows = 0;  // of experts: those of one block, which is laid out by itself
    std::vector<WeightSegment> segments;

    // Whether all rows are.
    bool is_stored_as(DType type) const {
        return segments.size() == 1 && segments.front().dtype == type;
    }
};

// Where a block of experts lies: its segment, and how many of it come before.
struct ExpertBlock {
    size_t segment = 0;
    int index = 0;
};
ExpertBlock find_block(const Weight& weight, int block);

// The blocks that a segment of theirs is made of.
std::span<const WeightBlock> blocks_of(std::span<const WeightBlock> blocks,
                                       const WeightSegment& segment);

}  // namespace aerie
