// Element types of tensors, and exact conversions between f32 and the 16-bit types.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace aerie {

// Q8_0, Q4_0 (weights) and I8G32 (activations) store blocks of neighbours of a row: see quant.h.
enum class DType : uint8_t { F32, F16, BF16, Q8_0, Q4_0, I8G32, I32, I64, Bool };

const char* name(DType type);  // "f32", "q8_0", ...

constexpr bool is_float(DType type) {
    return type == DType::F32 || type == DType::F16 || type == DType::BF16;
}
constexpr bool is_quantised(DType type) {
    return type == DType::Q8_0 || type == DType::Q4_0 || type == DType::I8G32;
}

// Activations that share a scale, and what dot products in integers go over: a block of I8G32, of
// Q8_0 and of Q4_0. Blocks of other types are larger (unit_elements).
constexpr int kGroup = 32;

// Elements of a unit, which cannot be cut: 1, or those of a block of a quantised type.
constexpr int unit_elements(DType type) {
    return is_quantised(type) ? kGroup : 1;
}
size_t unit_bytes(DType type);

// Bytes of some elements of a row, which are whole units.
inline size_t size_bytes(DType type, size_t elements = 1) {
    assert(elements % size_t(unit_elements(type)) == 0);
    return elements / size_t(unit_elements(type)) * unit_bytes(type);
}
// The other way round.
inline size_t elements_in(DType type, size_t bytes) {
    return bytes / unit_bytes(type) * size_t(unit_elements(type));
}

// Round to nearest, ties to even; denormals, infinities and NaN are kept.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

}  // namespace aerie
