// The element types of GGUF files: their names, blocks and values in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/dtype.h"

namespace aerie {

// Element types by their numbers in files. Integers and F64 hold no weights and are not decoded.
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
    size_t block_elements;       // elements of a row in one block; 1 for plain types
    size_t block_bytes;          // 0: a type that is known by name only
    std::optional<DType> dtype;  // aerie's type; nullopt: it holds no weights
};

// The row for a type's number in a file; nullptr: the type is unknown.
const GgmlTypeRow* find_ggml_type(uint32_t number);
const GgmlTypeRow& row_of(GgmlType type);
const char* name(GgmlType type);
// The GGUF type for a type of weights. Throws Error if there is none.
GgmlType ggml_type(DType type);

// Bytes of whole blocks of elements. Throws Error (naming `what`) if the elements are no whole
// number of blocks, or the product overflows.
size_t checked_bytes(size_t elements, GgmlType type, const std::string& what);

// Decodes whole blocks, to the values of gguf-py and the same bits on every machine. Throws Error
// (naming `what`) if the type holds no weights, or if `blocks` does not have exactly the size that
// out.size() elements take.
void decode(GgmlType type, std::span<const std::byte> blocks, std::span<float> out,
            const std::string& what);

}  // namespace aerie
