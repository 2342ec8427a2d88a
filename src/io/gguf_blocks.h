// The element types of GGUF files: their names, blocks and values in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/dtype.h"

namespace aerie {

// By the numbers that stand in files. Integers and F64 hold no weights: they are not decoded.
enum class GgmlType : uint32_t {
    F32 = 0,
    F16 = 1,
    Q4_0 = 2,
    Q4_1 = 3,
    Q5_0 = 6,
    Q5_1 = 7,
    Q8_0 = 8,
    Q2_K = 10,
    Q3_K = 11,
    Q4_K = 12,
    Q5_K = 13,
    Q6_K = 14,
    IQ4_NL = 20,
    IQ4_XS = 23,
    BF16 = 30,
    I8 = 24,
    I16 = 25,
    I32 = 26,
    I64 = 27,
    F64 = 28,
};

struct GgmlTypeRow {
    GgmlType type;
    const char* name;            // "Q4_K"
    size_t block_elements;       // neighbours of a row that share a block; 1 of plain types
    size_t block_bytes;          // 0: a type that we know by name alone
    std::optional<DType> dtype;  // what we call it; nothing: it holds no weights
};

// The row of a number that stands in a file; nullptr: no type that we have heard of.
const GgmlTypeRow* find_ggml_type(uint32_t number);
const GgmlTypeRow& row_of(GgmlType type);
const char* name(GgmlType type);
// What files call a type of weights. Throws Error if they have none.
GgmlType ggml_type(DType type);

// Elements of whole blocks as bytes. Throws Error (naming `what`) if they are no whole blocks, or
// the product overflows.
size_t checked_bytes(size_t elements, GgmlType type, const std::string& what);

// The values of whole blocks: those of gguf-py, and the same bits on every machine. Throws Error
// (naming `what`) if the type holds no weights, or `blocks` is not exactly as long as out.size()
// elements take.
void decode(GgmlType type, std::span<const std::byte> blocks, std::span<float> out,
            const std::string& what);

}  // namespace aerie
