// Checks several numbers per machine word: the addition carries a magnitude beyond the limit into
// the sign bit.
#include "core/finite.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/quant.h"

namespace aerie {

namespace {

// The smallest magnitude, in bits without the sign, that is not finite after conversion to `as`.
uint32_t limit_of(DType type, DType as) {
    if (type == DType::F16) return 0x7c00;
    if (type == DType::BF16) return as == DType::F16 ? 0x4780 : 0x7f80;
    return as == DType::F16 ? 0x477ff000 : as == DType::BF16 ? 0x7f7f8000 : 0x7f800000;
}

template <class Bits>
constexpr uint64_t in_every_lane(Bits value) {
    uint64_t word = 0;
    for (size_t i = 0; i < sizeof(word); i += sizeof(Bits)) word |= uint64_t(value) << (8 * i);
    return word;
}

template <class Bits>
uint64_t beyond(uint64_t word, uint64_t distance) {
    constexpr Bits kSign = Bits(1) << (8 * sizeof(Bits) - 1);
    return ((word & in_every_lane<Bits>(kSign - 1)) + distance) & in_every_lane<Bits>(kSign);
}

template <class Bits>
bool all_below(std::span<const std::byte> data, uint32_t limit) {
    constexpr size_t kBlock = 4096, kWord = sizeof(uint64_t);
    constexpr uint32_t kSign = uint32_t(1) << (8 * sizeof(Bits) - 1);
    const uint64_t distance = in_every_lane(Bits(kSign - limit));
    const auto word_at = [&](size_t place, size_t bytes) {
        uint64_t word = 0;
        std::memcpy(&word, data.data() + place, bytes);
        return word;
    };
    size_t place = 0;
    for (; place + kBlock <= data.size(); place += kBlock) {
        uint64_t found = 0;
        for (size_t i = 0; i < kBlock; i += kWord)
            found |= beyond<Bits>(word_at(place + i, kWord), distance);
        if (found) return false;
    }
    for (; place < data.size(); place += kWord)
        if (beyond<Bits>(word_at(place, std::min(kWord, data.size() - place)), distance))
            return false;
    return true;
}

// Checks the f16 at byte `first` of each block.
bool all_finite_at(std::span<const std::byte> blocks, size_t block_bytes, size_t first) {
    for (size_t place = first; place < blocks.size(); place += block_bytes) {
        uint16_t scale = 0;
        std::memcpy(&scale, blocks.data() + place, sizeof(scale));
        if ((scale & 0x7fff) >= 0x7c00) return false;
    }
    return true;
}

bool all_scales_finite(std::span<const std::byte> blocks, DType type) {
    return with_block(type, [&](auto block) {
        using Block = decltype(block);
        bool good = all_finite_at(blocks, sizeof(Block), offsetof(Block, scale));
        if constexpr (requires { block.least; })
            good = good && all_finite_at(blocks, sizeof(Block), offsetof(Block, least));
        return good;
    });
}

}  // namespace

bool all_finite(std::span<const std::byte> data, DType type, DType as) {
    if (is_quantised(type)) return all_scales_finite(data, type);
    const uint32_t limit = limit_of(type, as);
    return type == DType::F32 ? all_below<uint32_t>(data, limit) : all_below<uint16_t>(data, limit);
}

}  // namespace aerie
