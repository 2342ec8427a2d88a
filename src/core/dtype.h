// Element types of tensors, and exact conversions between f32 and the 16-bit types.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>

namespace aerie {

// Element types. The types from Q8_0 to IQ4_XS (weights) and I8G32 (activations) store blocks of
// neighbouring elements of a row; see quant_blocks.h and quant.h.
enum class DType : uint8_t {
    F32,
    F16,
    BF16,
    Q8_0,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    IQ4_NL,
    Q2_K,
    Q3_K,
    Q4_K,
    Q5_K,
    Q6_K,
    IQ4_XS,
    I8G32,
    I32,
    I64,
    Bool
};

// Activations that share a scale, and the length of integer dot products: a block of I8G32, or an
// eighth of a block of a K type.
constexpr int kGroup = 32;

enum class TypeKind : uint8_t { floats, quantised, other };

// General properties of a type. A unit is an element or a block, and cannot be split.
struct TypeTraits {
    const char* name;
    TypeKind kind;
    int unit_elements, unit_bytes;
};
constexpr TypeTraits traits_of(DType type) {
    switch (type) {
        case DType::F32:
            return {"f32", TypeKind::floats, 1, 4};
        case DType::F16:
            return {"f16", TypeKind::floats, 1, 2};
        case DType::BF16:
            return {"bf16", TypeKind::floats, 1, 2};
        case DType::Q8_0:
            return {"q8_0", TypeKind::quantised, kGroup, 34};
        case DType::Q4_0:
            return {"q4_0", TypeKind::quantised, kGroup, 18};
        case DType::Q4_1:
            return {"q4_1", TypeKind::quantised, kGroup, 20};
        case DType::Q5_0:
            return {"q5_0", TypeKind::quantised, kGroup, 22};
        case DType::Q5_1:
            return {"q5_1", TypeKind::quantised, kGroup, 24};
        case DType::IQ4_NL:
            return {"iq4_nl", TypeKind::quantised, kGroup, 18};
        case DType::Q2_K:
            return {"q2_k", TypeKind::quantised, 8 * kGroup, 84};
        case DType::Q3_K:
            return {"q3_k", TypeKind::quantised, 8 * kGroup, 110};
        case DType::Q4_K:
            return {"q4_k", TypeKind::quantised, 8 * kGroup, 144};
        case DType::Q5_K:
            return {"q5_k", TypeKind::quantised, 8 * kGroup, 176};
        case DType::Q6_K:
            return {"q6_k", TypeKind::quantised, 8 * kGroup, 210};
        case DType::IQ4_XS:
            return {"iq4_xs", TypeKind::quantised, 8 * kGroup, 136};
        case DType::I8G32:
            return {"i8g32", TypeKind::quantised, kGroup, 40};
        case DType::I32:
            return {"i32", TypeKind::other, 1, 4};
        case DType::I64:
            return {"i64", TypeKind::other, 1, 8};
        case DType::Bool:
            return {"bool", TypeKind::other, 1, 1};
    }
    return {"?", TypeKind::other, 1, 1};
}

constexpr const char* name(DType type) {
    return traits_of(type).name;
}
constexpr bool is_float(DType type) {
    return traits_of(type).kind == TypeKind::floats;
}
constexpr bool is_quantised(DType type) {
    return traits_of(type).kind == TypeKind::quantised;
}
constexpr int unit_elements(DType type) {
    return traits_of(type).unit_elements;
}
constexpr size_t unit_bytes(DType type) {
    return size_t(traits_of(type).unit_bytes);
}

// Bytes of this many elements of a row, which must be whole units.
inline size_t size_bytes(DType type, size_t elements = 1) {
    assert(elements % size_t(unit_elements(type)) == 0);
    return elements / size_t(unit_elements(type)) * unit_bytes(type);
}
// Elements in this many bytes.
inline size_t elements_in(DType type, size_t bytes) {
    return bytes / unit_bytes(type) * size_t(unit_elements(type));
}

// Rounds to nearest, ties to even; denormals, infinities and NaN are kept.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

}  // namespace aerie
