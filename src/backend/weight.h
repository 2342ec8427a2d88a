// Weights: matrices on a device, with rows stored in one or several types, and the blocks of host
// data that they are made of.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/dtype.h"

namespace aerie {

// Reads rows of a matrix from where they are stored, so that a file is never in memory twice.
class RowSource {
  public:
    virtual ~RowSource() = default;
    // Reads rows [first, first + count) to contiguous memory. May be called by several threads at
    // once. Throws Error.
    virtual void read(int first, int count, std::byte* out) const = 0;
};

// Host data of some rows of a weight, [rows, cols], contiguous. q, k and v arrive as three blocks.
struct WeightBlock {
    DType dtype = DType::F32;    // type of the data
    DType stored = DType::F32;   // type in which the device keeps the rows
    const void* data = nullptr;  // any alignment; not used after upload_weight
    int rows = 0;
    int cols = 0;
    const RowSource* source = nullptr;  // source of the data if `data` is null

    size_t row_bytes() const { return size_bytes(dtype, size_t(cols)); }
    // Returns these rows in memory: in place, or read into `scratch`.
    const std::byte* read(int first, int count, std::vector<std::byte>& scratch) const;
    void copy(int first, int count, std::byte* out) const;
};

// multiply: read by matmuls. lookup: read by Embed only. gated: two blocks of equal rows, gate and
// up, read by MatmulGated. experts: a stack of equal blocks, one for each expert, or several
// stacks one after the other; each stack is stored in one type, and ExpertMatmul reads one block of
// each stack at a time.
enum class WeightUse { multiply, gated, lookup, experts };

// Rows [first_row, first_row + rows) of a weight, stored in one type.
struct WeightSegment {
    DType dtype = DType::F32;
    int first_row = 0;
    int rows = 0;
};

// A matrix [rows, cols] on the device, in the backend's own layout; the right side of a matmul. An
// output has the same bits as if its segment were a weight of its own.
class Weight {
  public:
    // Neighbouring blocks with the same stored type become one segment. All blocks have the same
    // number of columns.
    Weight(std::span<const WeightBlock> blocks, WeightUse use);
    virtual ~Weight() = default;

    int rows = 0;         // outputs
    int cols = 0;         // inputs
    int matrix_rows = 0;  // experts: rows of one block, which has a layout of its own; else 0
    std::vector<WeightSegment> segments;

    // Whether all rows are stored in this type.
    bool is_stored_as(DType type) const {
        return segments.size() == 1 && segments.front().dtype == type;
    }
};

// The place of a block of experts: its segment, and the number of blocks before it in there.
struct ExpertBlock {
    size_t segment = 0;
    int index = 0;
};
ExpertBlock find_block(const Weight& weight, int block);

// The blocks that make up a segment.
std::span<const WeightBlock> blocks_of(std::span<const WeightBlock> blocks,
                                       const WeightSegment& segment);

}  // namespace aerie
