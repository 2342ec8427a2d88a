// Quantised values of at most 8 bits with one scale are kept; all other types go through f32.
#include "io/gguf/convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/float_environment.h"
#include "core/quant.h"

namespace aerie {

namespace {

// Copies the blocks of kGroup elements of a type that has one scale and values of at most 8 bits.
void keep_steps(DType type, std::span<const std::byte> blocks, std::span<std::byte> out) {
    for (size_t i = 0; i < blocks.size() / unit_bytes(type); ++i) {
        const BlockParts parts = take_apart(type, blocks.data() + i * unit_bytes(type));
        BlockQ8_0 made;
        made.scale = parts.scale;
        std::copy_n(parts.q, kGroup, made.q);
        std::memcpy(out.data() + i * sizeof(made), &made, sizeof(made));
    }
}

// Packing turns NaN and infinities into numbers, so the scale is made NaN.
void pack_values(std::span<const float> values, std::span<std::byte> out) {
    constexpr uint16_t kNaN = 0x7e00;
    for (size_t i = 0; i < values.size() / kGroup; ++i) {
        const float* group = values.data() + i * kGroup;
        BlockQ8_0 made = pack_q8_0(group);
        if (!std::all_of(group, group + kGroup, [](float value) { return std::isfinite(value); }))
            made.scale = kNaN;
        std::memcpy(out.data() + i * sizeof(made), &made, sizeof(made));
    }
}

}  // namespace

void convert(GgmlType type, std::span<const std::byte> blocks, DType to, std::span<std::byte> out,
             const std::string& what) {
    const FloatEnvironment environment;
    const DType own = row_of(type).dtype.value_or(to);
    if (to == own) {
        std::memcpy(out.data(), blocks.data(), blocks.size());
    } else if (to == DType::Q8_0 &&
               (own == DType::Q4_0 || own == DType::Q5_0 || own == DType::IQ4_NL)) {
        keep_steps(own, blocks, out);
    } else {
        std::vector<float> values(elements_in(to, out.size()));
        decode(type, blocks, values, what);
        if (to == DType::Q8_0)
            pack_values(values, out);
        else
            std::memcpy(out.data(), values.data(), out.size());
    }
}

}  // namespace aerie
