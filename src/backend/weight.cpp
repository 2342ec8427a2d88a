// Blocks into segments.
#include "backend/weight.h"

#include <cassert>

namespace aerie {

Weight::Weight(std::span<const WeightBlock> blocks) : cols(blocks.front().cols) {
    for (const WeightBlock& block : blocks) {
        assert(block.cols == cols);
        if (segments.empty() || segments.back().dtype != block.stored)
            segments.push_back({block.stored, rows, 0});
        segments.back().rows += block.rows;
        rows += block.rows;
    }
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
