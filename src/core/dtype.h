// Element types of tensors, and exact conversions between f32 and the 16-bit types.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace aerie {

// Q8_0, Q4_0 (weights) and I8G32 (activations) store 32 neighbours of a row together: see quant.h.
enum class DType : uint8_t { F32, F16, BF16, Q8_0, Q4_0, I8G32, I32, I64, Bool };

const char* name(DType type);  // "f32", "q8_0", ...

constexpr bool is_float(DType type) {
    return type == DType::F32 || type == DType::F16 || type == DType::BF16;
}
constexpr bool is_quantised(DType type) {
    return type == DType::Q8_0 || type == DType::Q4_0 || type == DType::I8G32;
}

constexpr int kGroup = 32;  // elements that share a scale in the quantised types

// Bytes of one element, or of one group of a quantised type.
size_t unit_bytes(DType type);

// Bytes of some elements of a row; of a quantised type whole groups.
inline size_t size_bytes(DType type, size_t elements = 1) {
    if (!is_quantised(type)) return elements * unit_bytes(type);
    assert(elements % kGroup == 0);
    return elements / kGroup * unit_bytes(type);
}

// Round to nearest, ties to even; denormals, infinities and NaN are kept.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

}  // namespace aerie
