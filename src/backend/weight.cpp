// Combines blocks into segments.
#include "backend/weight.h"

#include <cassert>
#include <cstring>

namespace aerie {

const std::byte* WeightBlock::read(int first, int count, std::vector<std::byte>& scratch) const {
    const size_t begin = size_t(first) * row_bytes();
    if (data) return static_cast<const std::byte*>(data) + begin;
    scratch.resize(size_t(count) * row_bytes());
    source->read(first, count, scratch.data());
    return scratch.data();
}

void WeightBlock::copy(int first, int count, std::byte* out) const {
    if (!data) return source->read(first, count, out);
    std::memcpy(out, static_cast<const std::byte*>(data) + size_t(first) * row_bytes(),
                size_t(count) * row_bytes());
}

Weight::Weight(std::span<const WeightBlock> blocks, WeightUse use)
    : cols(blocks.front().cols), matrix_rows(use == WeightUse::experts ? blocks.front().rows : 0) {
    for (const WeightBlock& block : blocks) {
        assert(block.cols == cols && (matrix_rows == 0 || block.rows == matrix_rows));
        if (segments.empty() || segments.back().dtype != block.stored)
            segments.push_back({block.stored, rows, 0});
        segments.back().rows += block.rows;
        rows += block.rows;
    }
}

ExpertBlock find_block(const Weight& weight, int block) {
    const int row = block * weight.matrix_rows;
    size_t i = 0;
    while (row >= weight.segments[i].first_row + weight.segments[i].rows) ++i;
    return {i, (row - weight.segments[i].first_row) / weight.matrix_rows};
}

std::span<const WeightBlock> blocks_of(std::span<const WeightBlock> blocks,
                                       const WeightSegment& segment) {
    int row = 0;
    size_t first = 0;
    for (; row < segment.first_row; ++first) row += blocks[first].rows;
    size_t count = 0;
    for (; row < segment.first_row + segment.rows; ++count) row += blocks[first + count].rows;
    return blocks.subspan(first, count);
}

}  // namespace aerie
