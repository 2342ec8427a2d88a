// Repacks rows of files into panels.
#include "vulkan/panels.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <span>

#include "core/quant.h"

namespace aerie::vulkan {

namespace {

constexpr int kQuadBytes = 16;
constexpr int kReadTogether = 8;    // elements of a unit of matmul_floats.comp
constexpr int kSteps = kGroup / 4;  // words of a group's codes as bytes
constexpr uint32_t kEveryByte = 0x01010101;

enum class Scales { one, one_least, whole_least, halves };

// The codes of types that are repacked; lib/weight.glsl has the same constants.
struct CodeForm {
    int offset, high_bits;
    Scales scales;
};
constexpr CodeForm form_of(DType type) {
    switch (type) {
        case DType::Q5_0:
            return {16, 1, Scales::one};
        case DType::Q5_1:
            return {0, 1, Scales::one_least};
        case DType::Q4_K:
            return {0, 0, Scales::whole_least};
        case DType::Q5_K:
            return {0, 1, Scales::whole_least};
        case DType::Q6_K:
            return {32, 2, Scales::halves};
        default:
            assert(!"no weight is stored in this type");
            return {};
    }
}

// The bytes of one row in one panel, added piece by piece.
class RowPanel {
  public:
    void add(const void* from, size_t size) {
        std::memcpy(bytes_ + size_, from, size);
        size_ += size;
    }
    std::span<const std::byte> bytes() const { return {bytes_, size_}; }

  private:
    std::byte bytes_[unit_bytes(DType::Q6_K)];  // the largest block
    size_t size_ = 0;
};

// Four codes, a byte each: q + offset. The bytes are first made unsigned, so that no byte borrows
// from the next.
uint32_t codes_of(const int8_t* q, int offset) {
    uint32_t word;
    std::memcpy(&word, q, sizeof(word));
    return (word ^ 0x80 * kEveryByte) - uint32_t(0x80 - offset) * kEveryByte;
}

void add_codes(RowPanel& panel, const BlockParts& parts, int groups, const CodeForm& form) {
    uint32_t high[kSuperBlock / kScaled] = {};
    const size_t high_words = size_t(form.high_bits);  // words per group
    for (int g = 0; g < groups; ++g) {
        uint32_t low[kSteps / 2] = {};
        for (int step = 0; step < kSteps; ++step) {
            const uint32_t codes = codes_of(parts.q + g * kGroup + step * 4, form.offset);
            low[step % 4] |= (codes & 15 * kEveryByte) << (step / 4 * 4);
            const int bit = step * form.high_bits;
            high[size_t(g) * high_words + size_t(bit / 8)] |= (codes >> 4 & 15 * kEveryByte)
                                                              << bit % 8;
        }
        panel.add(low, sizeof(low));
    }
    panel.add(high, size_t(groups) * high_words * sizeof(high[0]));
}

void add_nibble_scales(RowPanel& panel, const BlockParts& parts) {
    uint32_t scales = 0, leasts = 0, high = 0;
    for (int g = 0; g < kSuperBlock / kGroup; ++g) {
        const uint32_t scale = uint32_t(parts.scales[2 * g]), least = uint32_t(parts.leasts[2 * g]);
        scales |= (scale & 15) << (4 * g);
        leasts |= (least & 15) << (4 * g);
        high |= (scale >> 4 | least >> 4 << 2) << (4 * g);
    }
    for (uint32_t word : {scales, leasts, high}) panel.add(&word, sizeof(word));
}

void add_scales(RowPanel& panel, const BlockParts& parts, Scales scales) {
    if (scales == Scales::halves) panel.add(parts.scales, sizeof(parts.scales));
    panel.add(&parts.scale, sizeof(parts.scale));
    if (scales == Scales::one_least || scales == Scales::whole_least)
        panel.add(&parts.least, sizeof(parts.least));
    if (scales == Scales::whole_least) add_nibble_scales(panel, parts);
}

RowPanel panel_of(DType type, const std::byte* block) {
    RowPanel panel;
    if (type == DType::Q8_0 || type == DType::Q4_0) {  // the bytes of the block, with the scale
                                                       // last
        panel.add(block + sizeof(uint16_t), unit_bytes(type) - sizeof(uint16_t));
        panel.add(block, sizeof(uint16_t));
        return panel;
    }
    const BlockParts parts = take_apart(type, block);
    const CodeForm form = form_of(type);
    add_codes(panel, parts, unit_elements(type) / kGroup, form);
    add_scales(panel, parts, form.scales);
    return panel;
}

void put_panel(std::byte* panel, int lane, std::span<const std::byte> row) {
    for (size_t piece : {kQuadBytes, 4, 2})
        for (; row.size() >= piece; row = row.subspan(piece), panel += piece * kStripRows)
            std::memcpy(panel + size_t(lane) * piece, row.data(), piece);
}

void put_floats(std::byte* strip, int lane, const std::byte* row, size_t row_bytes, size_t piece) {
    for (size_t done = 0; done < row_bytes; done += piece)
        std::memcpy(strip + done * kStripRows + size_t(lane) * piece, row + done,
                    std::min(piece, row_bytes - done));
}

}  // namespace

StripLayout strip_layout(DType type, int cols) {
    const int bytes = is_quantised(type)   ? int(unit_bytes(type))
                      : type == DType::F16 ? 2 * kQuadBytes
                                           : kQuadBytes;
    const int elements = int(elements_in(type, size_t(bytes)));
    const int together = std::max(elements, kReadTogether);
    return {elements, bytes, (cols + together - 1) / together * (together / elements)};
}

void put_row(std::byte* strip, int lane, const std::byte* row, DType type, int cols) {
    const StripLayout layout = strip_layout(type, cols);
    const size_t piece = size_t(layout.panel_bytes);
    if (!is_quantised(type))
        return put_floats(strip, lane, row, size_bytes(type, size_t(cols)), piece);
    for (int i = 0; i < layout.panels; ++i) {
        put_panel(strip, lane, panel_of(type, row).bytes());
        strip += piece * kStripRows;
        row += piece;
    }
}

}  // namespace aerie::vulkan
