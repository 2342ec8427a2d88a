// Element types of tensors, and exact conversions between f32 and the 16-bit types.
#pragma once

#include <cstddef>
#include <cstdint>

namespace aerie {

enum class DType : uint8_t { F32, F16, BF16, I32, I64, Bool };

size_t size_bytes(DType type);
const char* name(DType type);  // "f32", "f16", ...

inline bool is_float(DType type) {
    return type == DType::F32 || type == DType::F16 || type == DType::BF16;
}

// Round to nearest, ties to even; denormals, infinities and NaN are kept.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

}  // namespace aerie
