// Rows are converted through f32 if the stored type differs from the data's.
#include "backend/weight_rows.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/float_environment.h"
#include "core/pack_blocks.h"
#include "core/quant.h"

namespace aerie {

WeightRows::WeightRows(std::span<const WeightBlock> blocks)
    : blocks_(blocks), converter_(blocks.front().stored, blocks.front().cols) {}

const std::byte* WeightRows::row(int index) {
    const WeightBlock* block = blocks_.data();
    for (; index >= block->rows; ++block) index -= block->rows;
    return converter_.convert(find(*block, index), block->dtype);
}

const std::byte* WeightRows::find(const WeightBlock& block, int index) {
    constexpr size_t kAheadBytes = size_t(4) << 20;
    if (&block != ahead_ || index < first_ || index >= last_) {
        const size_t most = std::max<size_t>(kAheadBytes / block.row_bytes(), 1);
        ahead_ = &block;
        first_ = index;
        last_ = index + int(std::min(most, size_t(block.rows - index)));
        rows_ = block.read(first_, last_ - first_, room_);
    }
    return rows_ + size_t(index - first_) * block.row_bytes();
}

RowConverter::RowConverter(DType to, int cols)
    : to_(to), values_(size_t(cols)), packed_(size_bytes(to, size_t(cols))) {}

const std::byte* RowConverter::convert(const std::byte* row, DType from) {
    if (from == to_) return row;
    const FloatEnvironment environment;
    unpack(values_.data(), row, from, values_.size());
    pack(packed_.data(), values_.data(), to_, values_.size());
    return packed_.data();
}

}  // namespace aerie
