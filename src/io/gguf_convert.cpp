// Steps of 8 bits are kept; all else goes through f32.
#include "io/gguf_convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/float_environment.h"
#include "core/quant.h"

namespace aerie {

namespace {

// Of blocks of kGroup elements that begin with their scale and hold it times whole numbers of 8
// bits: those numbers are the values at scale 1.
void keep_steps(GgmlType type, std::span<const std::byte> blocks, std::span<std::byte> out,
                const std::string& what) {
    constexpr uint16_t kOne = 0x3c00;  // 1 in f16
    const size_t block_bytes = row_of(type).block_bytes;
    std::vector<std::byte> block(block_bytes);
    float steps[kGroup];
    for (size_t i = 0; i < blocks.size() / block_bytes; ++i) {
        BlockQ8_0 made;
        std::memcpy(block.data(), blocks.data() + i * block_bytes, block_bytes);
        std::memcpy(&made.scale, block.data(), sizeof(made.scale));
        std::memcpy(block.data(), &kOne, sizeof(kOne));
        decode(type, block, steps, what);
        for (int k = 0; k < kGroup; ++k) made.q[k] = int8_t(steps[k]);
        std::memcpy(out.data() + i * sizeof(made), &made, sizeof(made));
    }
}

// Packing makes numbers of what is none: the scale has to tell.
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

bool has_own_type(GgmlType type) {
    return runs_as(type) != DType::Q8_0 || type == GgmlType::Q8_0;
}

}  // namespace

DType runs_as(GgmlType type) {
    switch (type) {
        case GgmlType::F32:
            return DType::F32;
        case GgmlType::F16:
            return DType::F16;
        case GgmlType::BF16:
            return DType::BF16;
        case GgmlType::Q4_0:
            return DType::Q4_0;
        default:
            return DType::Q8_0;
    }
}

void convert(GgmlType type, std::span<const std::byte> blocks, DType to, std::span<std::byte> out,
             const std::string& what) {
    const FloatEnvironment environment;
    if (has_own_type(type) && to == runs_as(type)) {
        std::memcpy(out.data(), blocks.data(), blocks.size());
    } else if (to == DType::Q8_0 && (type == GgmlType::Q5_0 || type == GgmlType::IQ4_NL)) {
        keep_steps(type, blocks, out, what);
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
