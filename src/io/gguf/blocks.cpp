// The table of GGUF's types.
#include "io/gguf/blocks.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/quant.h"

namespace aerie {
namespace {

constexpr GgmlTypeRow weights(GgmlType type, const char* name, DType dtype) {
    return {type, name, size_t(unit_elements(dtype)), unit_bytes(dtype), dtype};
}
constexpr GgmlTypeRow plain(GgmlType type, const char* name, size_t bytes) {
    return {type, name, 1, bytes, {}};
}
constexpr GgmlTypeRow unread(uint32_t number, const char* name) {
    return {GgmlType(number), name, 0, 0, {}};
}

constexpr std::array kTypes{
    weights(GgmlType::F32, "F32", DType::F32),
    weights(GgmlType::F16, "F16", DType::F16),
    weights(GgmlType::BF16, "BF16", DType::BF16),
    weights(GgmlType::Q8_0, "Q8_0", DType::Q8_0),
    weights(GgmlType::Q4_0, "Q4_0", DType::Q4_0),
    weights(GgmlType::Q4_1, "Q4_1", DType::Q4_1),
    weights(GgmlType::Q5_0, "Q5_0", DType::Q5_0),
    weights(GgmlType::Q5_1, "Q5_1", DType::Q5_1),
    weights(GgmlType::Q2_K, "Q2_K", DType::Q2_K),
    weights(GgmlType::Q3_K, "Q3_K", DType::Q3_K),
    weights(GgmlType::Q4_K, "Q4_K", DType::Q4_K),
    weights(GgmlType::Q5_K, "Q5_K", DType::Q5_K),
    weights(GgmlType::Q6_K, "Q6_K", DType::Q6_K),
    weights(GgmlType::IQ4_NL, "IQ4_NL", DType::IQ4_NL),
    weights(GgmlType::IQ4_XS, "IQ4_XS", DType::IQ4_XS),
    plain(GgmlType::I8, "I8", 1),
    plain(GgmlType::I16, "I16", 2),
    plain(GgmlType::I32, "I32", 4),
    plain(GgmlType::I64, "I64", 8),
    plain(GgmlType::F64, "F64", 8),
    unread(9, "Q8_1"),
    unread(15, "Q8_K"),
    unread(16, "IQ2_XXS"),
    unread(17, "IQ2_XS"),
    unread(18, "IQ3_XXS"),
    unread(19, "IQ1_S"),
    unread(21, "IQ3_S"),
    unread(22, "IQ2_S"),
    unread(29, "IQ1_M"),
    unread(34, "TQ1_0"),
    unread(35, "TQ2_0"),
    unread(39, "MXFP4"),
};

}  // namespace

const GgmlTypeRow* find_ggml_type(uint32_t number) {
    const auto row = std::find_if(kTypes.begin(), kTypes.end(), [&](const GgmlTypeRow& each) {
        return uint32_t(each.type) == number;
    });
    return row == kTypes.end() ? nullptr : &*row;
}

const GgmlTypeRow& row_of(GgmlType type) {
    const GgmlTypeRow* row = find_ggml_type(uint32_t(type));
    if (!row) throw Error("GGUF type " + std::to_string(uint32_t(type)) + " is unknown");
    return *row;
}

const char* name(GgmlType type) {
    return row_of(type).name;
}

GgmlType ggml_type(DType type) {
    const auto row = std::find_if(kTypes.begin(), kTypes.end(),
                                  [&](const GgmlTypeRow& each) { return each.dtype == type; });
    if (row == kTypes.end()) throw Error(std::string("GGUF has no type ") + name(type));
    return row->type;
}

size_t checked_bytes(size_t elements, GgmlType type, const std::string& what) {
    const GgmlTypeRow& row = row_of(type);
    if (row.block_bytes == 0)
        throw Error(what + ": type " + row.name + " is not supported", Cause::unsupported);
    if (elements % row.block_elements != 0) {
        throw Error(what + ": " + std::to_string(elements) + " elements are no whole blocks of " +
                    row.name + ", which have " + std::to_string(row.block_elements));
    }
    size_t bytes = 0;
    if (__builtin_mul_overflow(elements / row.block_elements, row.block_bytes, &bytes))
        throw Error(what + ": " + std::to_string(elements) + " elements overflow");
    return bytes;
}

void decode(GgmlType type, std::span<const std::byte> blocks, std::span<float> out,
            const std::string& what) {
    const GgmlTypeRow& row = row_of(type);
    if (!row.dtype)
        throw Error(what + ": type " + row.name + " holds no weights that we read",
                    Cause::unsupported);
    const size_t expected = checked_bytes(out.size(), type, what);
    if (blocks.size() != expected) {
        throw Error(what + ": " + std::to_string(blocks.size()) + " bytes, " +
                    std::to_string(out.size()) + " elements of " + row.name + " take " +
                    std::to_string(expected));
    }
    unpack(out.data(), blocks.data(), *row.dtype, out.size());
}

}  // namespace aerie
