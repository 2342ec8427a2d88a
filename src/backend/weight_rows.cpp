// Through f32, unless the type is kept.
#include "backend/weight_rows.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/float_environment.h"
#include "core/quant.h"

namespace aerie {

namespace {

// Element i of data that may begin at any byte.
template <class T>
T element(const std::byte* data, size_t i) {
    T value;
    std::memcpy(&value, data + i * sizeof(T), sizeof(T));
    return value;
}

template <class Block>
void pack_blocks(std::vector<std::byte>& to, const std::vector<float>& values,
                 Block (*pack)(const float*)) {
    constexpr size_t kUnit = unit_elements(Block::kType);
    for (size_t i = 0; i < values.size() / kUnit; ++i) {
        const Block block = pack(values.data() + i * kUnit);
        std::memcpy(to.data() + i * sizeof(Block), &block, sizeof(Block));
    }
}

template <class T, class Convert>
void convert_all(std::vector<std::byte>& to, const std::vector<float>& values, Convert convert) {
    for (size_t i = 0; i < values.size(); ++i) {
        const T value = convert(values[i]);
        std::memcpy(to.data() + i * sizeof(T), &value, sizeof(T));
    }
}

}  // namespace

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
    read_floats(row, from);
    pack();
    return packed_.data();
}

void RowConverter::read_floats(const std::byte* row, DType from) {
    if (is_quantised(from)) return unpack(values_.data(), row, from, int(values_.size()));
    for (size_t i = 0; i < values_.size(); ++i)
        values_[i] = from == DType::F32   ? element<float>(row, i)
                     : from == DType::F16 ? f16_to_f32(element<uint16_t>(row, i))
                                          : bf16_to_f32(element<uint16_t>(row, i));
}

void RowConverter::pack() {
    switch (to_) {
        case DType::F16:
            return convert_all<uint16_t>(packed_, values_, f32_to_f16);
        case DType::BF16:
            return convert_all<uint16_t>(packed_, values_, f32_to_bf16);
        case DType::Q8_0:
            return pack_blocks(packed_, values_, pack_q8_0);
        case DType::Q4_0:
            return pack_blocks(packed_, values_, pack_q4_0);
        default:
            assert(to_ == DType::F32);
            std::memcpy(packed_.data(), values_.data(), packed_.size());
    }
}

}  // namespace aerie
