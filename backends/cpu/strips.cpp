// Packs rows into strips of sixteen, and unpacks them.
#include "cpu/strips.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "core/pack_blocks.h"
#include "core/take_apart.h"
#include "cpu/memory.h"
#include "cpu/strip_layout.h"

namespace aerie::cpu {

namespace {

// The codes of one lane of a group: a word per step of four elements, a byte per element.
constexpr int kGroupSteps = kGroup / 4;
using Steps = std::array<uint32_t, kGroupSteps>;
constexpr uint32_t kEachByte = 0x01010101;

// A word with bits [shift, shift + bits) of the codes of `count` steps from `first` on: in each
// byte, the bits of a step lie above those of the step before.
constexpr uint32_t shared_bits(const Steps& steps, int first, int count, int shift, int bits) {
    uint32_t word = 0;
    for (int i = 0; i < count; ++i)
        word |= (steps[size_t(first + i)] >> shift & kEachByte * ((1u << bits) - 1)) << (i * bits);
    return word;
}
// Puts the bits of such a word back into the codes.
void add_shared_bits(Steps& steps, int first, int count, int shift, int bits, uint32_t word) {
    for (int i = 0; i < count; ++i)
        steps[size_t(first + i)] |= (word >> (i * bits) & kEachByte * ((1u << bits) - 1)) << shift;
}

// Calls body(word, first step, steps, shift, bits) for each word of a panel that has codes of a
// lane.
template <class Body>
constexpr void for_code_words(Codes codes, const Body& body) {
    const bool is_two_bits = codes == Codes::two_bits;
    const int low_bits = codes == Codes::bytes ? 8 : is_two_bits ? 2 : 4, each = 8 / low_bits;
    int word = 0;
    for (int step = 0; step < kGroupSteps; step += each) body(word++, step, each, 0, low_bits);
    if (codes == Codes::five_bits) body(word, 0, 8, 4, 1);
    if (codes == Codes::six_bits)
        for (int step = 0; step < kGroupSteps; step += 4) body(word++, step, 4, 4, 2);
}

template <StripLayout kLayout>
void put_codes(uint8_t* codes, int lane, const int8_t* q) {
    uint8_t bytes[kGroup];
    for (int k = 0; k < kGroup; ++k) bytes[k] = uint8_t(q[k] + kLayout.offset);
    Steps steps;
    std::memcpy(steps.data(), bytes, kGroup);
    for_code_words(kLayout.codes, [&](int word, int first, int count, int shift, int bits) {
        const uint32_t value = shared_bits(steps, first, count, shift, bits);
        std::memcpy(codes + (word * kStripRows + lane) * 4, &value, 4);
    });
}

void get_codes(int8_t* q, const uint8_t* codes, const StripLayout& layout, int lane) {
    Steps steps = {};
    for_code_words(layout.codes, [&](int word, int first, int count, int shift, int bits) {
        uint32_t value;
        std::memcpy(&value, codes + (word * kStripRows + lane) * 4, 4);
        add_shared_bits(steps, first, count, shift, bits, value);
    });
    for (int k = 0; k < kGroup; ++k) {
        const int code = steps[size_t(k / 4)] >> (k % 4 * 8) & 255;
        q[k] = layout.codes == Codes::steps_of_4 ? kIq4Steps[code] : int8_t(code - layout.offset);
    }
}

// The integer scales and mins of a group: of its first half, or of all of it, and of its second
// half.
struct WholeScales {
    int scale[2] = {1, 1}, least[2] = {1, 1};
};

void put_scales(uint8_t* whole, const StripLayout& layout, int lane, const WholeScales& from) {
    switch (layout.scales) {
        case Scales::one:
        case Scales::one_least:
            return;
        case Scales::whole:
            whole[lane] = uint8_t(from.scale[0]);
            return;
        case Scales::whole_least: {
            whole[lane] = uint8_t((from.scale[0] & 15) | (from.least[0] & 15) << 4);
            const int high = from.scale[0] >> 4 | from.least[0] >> 4 << 2;
            uint8_t& both = whole[kStripRows + lane % 8];
            both = uint8_t(both | high << (lane / 8 * 4));
            return;
        }
        case Scales::halves:
            for (int half = 0; half < 2; ++half)
                whole[half * kStripRows + lane] = uint8_t(from.scale[half]);
            return;
        case Scales::halves_least:
            for (int half = 0; half < 2; ++half)
                whole[half * kStripRows + lane] = uint8_t(from.scale[half] | from.least[half] << 4);
            return;
    }
}

WholeScales get_scales(const uint8_t* whole, const StripLayout& layout, int lane) {
    WholeScales to;
    switch (layout.scales) {
        case Scales::one:
        case Scales::one_least:
            break;
        case Scales::whole:
            to.scale[0] = to.scale[1] = int8_t(whole[lane]);
            break;
        case Scales::whole_least: {
            const int high = whole[kStripRows + lane % 8] >> (lane / 8 * 4) & 15;
            to.scale[0] = to.scale[1] = (whole[lane] & 15) | (high & 3) << 4;
            to.least[0] = to.least[1] = whole[lane] >> 4 | high >> 2 << 4;
            break;
        }
        case Scales::halves:
            for (int half = 0; half < 2; ++half)
                to.scale[half] = int8_t(whole[half * kStripRows + lane]);
            break;
        case Scales::halves_least:
            for (int half = 0; half < 2; ++half) {
                to.scale[half] = whole[half * kStripRows + lane] & 15;
                to.least[half] = whole[half * kStripRows + lane] >> 4;
            }
    }
    return to;
}

template <StripLayout kLayout>
void put_unit(uint8_t* unit, int lane, const BlockParts& parts) {
    constexpr const StripLayout& layout = kLayout;
    std::memcpy(unit + layout.scale_at() + size_t(lane) * 2, &parts.scale, 2);
    if (layout.has_least())
        std::memcpy(unit + layout.least_at() + size_t(lane) * 2, &parts.least, 2);
    for (int g = 0; g < layout.groups(); ++g) {
        const int8_t *scales = parts.scales + 2 * g, *leasts = parts.leasts + 2 * g;
        put_codes<kLayout>(unit + size_t(g) * layout.code_bytes(), lane, parts.q + g * kGroup);
        put_scales(unit + layout.whole_at(g), layout, lane,
                   {{scales[0], scales[1]}, {leasts[0], leasts[1]}});
    }
}

// Packs a row of `cols` elements into a lane of a strip.
template <class Block>
void put_row(uint8_t* unit, int lane, const std::byte* row, size_t cols) {
    constexpr StripLayout kLayout = layout_of(Block::kType);
    for (size_t k = 0; k < cols; k += size_t(unit_elements(Block::kType))) {
        Block block;
        std::memcpy(&block, row, sizeof(block));
        BlockParts parts;
        take_codes(parts, block);
        put_unit<kLayout>(unit, lane, parts);
        unit += kLayout.unit_bytes();
        row += sizeof(block);
    }
}

// The same for floats. The row may have any alignment.
template <class Element>
void put_elements(std::byte* strip, int lane, const std::byte* row, size_t cols) {
    Element* to = reinterpret_cast<Element*>(strip) + lane;
    for (size_t k = 0; k < cols; ++k)
        std::memcpy(to + k * kStripRows, row + k * sizeof(Element), sizeof(Element));
}

BlockParts get_unit(const uint8_t* unit, const StripLayout& layout, int lane) {
    BlockParts parts;
    std::memcpy(&parts.scale, unit + layout.scale_at() + size_t(lane) * 2, 2);
    if (layout.has_least())
        std::memcpy(&parts.least, unit + layout.least_at() + size_t(lane) * 2, 2);
    for (int g = 0; g < layout.groups(); ++g) {
        get_codes(parts.q + g * kGroup, unit + size_t(g) * layout.code_bytes(), layout, lane);
        const WholeScales whole = get_scales(unit + layout.whole_at(g), layout, lane);
        for (int half = 0; half < 2; ++half) {
            parts.scales[2 * g + half] = int8_t(whole.scale[half]);
            parts.leasts[2 * g + half] = int8_t(whole.least[half]);
        }
    }
    return parts;
}

template <class Element>
const Element& element(const std::byte* strip, int lane, int k) {
    return reinterpret_cast<const Element*>(strip)[k * kStripRows + lane];
}

}  // namespace

size_t strip_bytes(DType type, int cols) {
    if (!is_quantised(type)) return size_t(cols) * kStripRows * size_bytes(type);
    return size_t(cols / unit_elements(type)) * layout_of(type).unit_bytes();
}

RowPacker::RowPacker(DType as, int cols, const Kernels& kernels)
    : as_(as), kernels_(kernels), values_(size_t(cols)), packed_(size_bytes(as, size_t(cols))) {}

void RowPacker::read_floats(const std::byte* row, DType from) {
    if (is_quantised(from))
        unpack(values_.data(), row, from, values_.size());
    else
        kernels_.convert(values_.data(), Float::F32, row, float_type(from), values_.size());
}

void RowPacker::pack_blocks(std::byte* strip, int lane, const std::byte* row, DType from) {
    if (from != as_) {
        read_floats(row, from);
        if (as_ == DType::Q8_0 || as_ == DType::Q4_0)
            kernels_.pack_weights(packed_.data(), as_, values_.data(), int(values_.size()));
        else
            aerie::pack(packed_.data(), values_.data(), as_, values_.size());
        row = packed_.data();
    }
    with_block(as_, [&](auto block) {
        put_row<decltype(block)>(reinterpret_cast<uint8_t*>(strip), lane, row, values_.size());
    });
}

void RowPacker::pack(std::byte* strip, int lane, const std::byte* row, DType from) {
    if (is_quantised(as_)) return pack_blocks(strip, lane, row, from);
    if (from != as_) {
        read_floats(row, from);
        kernels_.convert(packed_.data(), float_type(as_), values_.data(), Float::F32,
                         values_.size());
        row = packed_.data();
    }
    size_bytes(as_) == 4 ? put_elements<uint32_t>(strip, lane, row, values_.size())
                         : put_elements<uint16_t>(strip, lane, row, values_.size());
}

void unpack_row(float* row, const std::byte* strip, DType type, int lane, int cols) {
    if (is_quantised(type)) {
        const StripLayout layout = layout_of(type);
        const uint8_t* unit = reinterpret_cast<const uint8_t*>(strip);
        for (int k = 0; k < cols; k += unit_elements(type), unit += layout.unit_bytes())
            unpack(row + k, get_unit(unit, layout, lane), unit_elements(type));
        return;
    }
    for (int k = 0; k < cols; ++k)
        row[k] = type == DType::F32   ? element<float>(strip, lane, k)
                 : type == DType::F16 ? f16_to_f32(element<uint16_t>(strip, lane, k))
                                      : bf16_to_f32(element<uint16_t>(strip, lane, k));
}

}  // namespace aerie::cpu
