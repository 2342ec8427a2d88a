// Through f32, unless the type is kept.
#include "backend/weight_rows.h"

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
    : blocks_(blocks),
      stored_(blocks.front().stored),
      values_(size_t(cols())),
      packed_(size_bytes(stored_, size_t(cols()))) {}

const std::byte* WeightRows::row(int index) {
    const FloatEnvironment environment;
    const WeightBlock* block = blocks_.data();
    for (; index >= block->rows; ++block) index -= block->rows;
    const std::byte* data = static_cast<const std::byte*>(block->data) +
                            size_t(index) * size_bytes(block->dtype, size_t(cols()));
    if (block->dtype == stored_) return data;
    read_floats(*block, data);
    pack();
    return packed_.data();
}

void WeightRows::read_floats(const WeightBlock& block, const std::byte* data) {
    if (is_quantised(block.dtype))
        return unpack(values_.data(), data, block.dtype, int(values_.size()));
    for (size_t i = 0; i < values_.size(); ++i)
        values_[i] = block.dtype == DType::F32   ? element<float>(data, i)
                     : block.dtype == DType::F16 ? f16_to_f32(element<uint16_t>(data, i))
                                                 : bf16_to_f32(element<uint16_t>(data, i));
}

void WeightRows::pack() {
    switch (stored_) {
        case DType::F16:
            return convert_all<uint16_t>(packed_, values_, f32_to_f16);
        case DType::BF16:
            return convert_all<uint16_t>(packed_, values_, f32_to_bf16);
        case DType::Q8_0:
            return pack_blocks(packed_, values_, pack_q8_0);
        case DType::Q4_0:
            return pack_blocks(packed_, values_, pack_q4_0);
        default:
            assert(stored_ == DType::F32);
            std::memcpy(packed_.data(), values_.data(), packed_.size());
    }
}

}  // namespace aerie
