// Blocks of GGUF: every type against values by gguf-py, and sizes that do not fit.
#include "io/gguf/blocks.h"

#include <bit>
#include <cstring>
#include <limits>
#include <random>
#include <set>

#include "core/dtype.h"
#include "io/damage.h"
#include "io/gguf_golden.h"
#include "io/write_files.h"

namespace aerie {
namespace {

using test::error_of;

constexpr GgmlType kWeightTypes[] = {
    GgmlType::F32,  GgmlType::F16,  GgmlType::BF16, GgmlType::Q8_0,   GgmlType::Q4_0,
    GgmlType::Q4_1, GgmlType::Q5_0, GgmlType::Q5_1, GgmlType::Q2_K,   GgmlType::Q3_K,
    GgmlType::Q4_K, GgmlType::Q5_K, GgmlType::Q6_K, GgmlType::IQ4_NL, GgmlType::IQ4_XS};

TEST(GgufBlocks, ValuesAreThoseOfTheOtherProgram) {
    const Gguf model = Gguf::open(test::gguf_dir() / "tensors.gguf");
    const Json expected = test::gguf_json("tensors.json");
    std::set<GgmlType> seen;
    for (const auto& [name, tensor] : *expected.object()) {
        SCOPED_TRACE(name);
        const GgufTensor* found = model.find(name);
        ASSERT_NE(found, nullptr);
        EXPECT_EQ(aerie::name(found->type), *tensor.find("type")->string());
        test::expect_values(test::values_of(model, *found), tensor);
        seen.insert(found->type);
    }
    EXPECT_EQ(seen.size(), std::size(kWeightTypes)) << "a type without a tensor";
    EXPECT_EQ(model.tensors().size(), expected.object()->size());
}

TEST(GgufBlocks, Bf16IsTheUpperHalfOfF32) {
    std::string bytes;
    const std::vector<float> values = {1.0f, -2.5f, 0.0f, 0x1p-130f,
                                       std::numeric_limits<float>::infinity()};
    for (const float value : values)
        bytes += test::little_endian(std::bit_cast<uint32_t>(value) >> 16, 2);
    std::vector<float> out(values.size());
    decode(GgmlType::BF16, test::bytes_of(bytes), out, "bf16");
    EXPECT_EQ(out, values);
}

// A part of IQ4_XS is a block of IQ4_NL; its scale is the block's scale times the part's.
TEST(GgufBlocks, PartsOfIq4XsAreBlocksOfIq4Nl) {
    std::mt19937 random(1);
    std::string nibbles(128, '\0');
    for (char& c : nibbles) c = char(random());
    const int scales[8] = {-32, -1, 0, 1, 15, 16, 31, -17};
    uint32_t high = 0;
    std::string low(4, '\0'), small;
    for (int part = 0; part < 8; ++part) {
        const int stored = scales[part] + 32;
        low[part / 2] = char(low[part / 2] | (stored & 15) << (part % 2 * 4));
        high |= uint32_t(stored >> 4) << (2 * part);
        small += test::little_endian(f32_to_f16(0.5f * float(scales[part])), 2) +
                 nibbles.substr(size_t(part) * 16, 16);
    }
    const std::string super =
        test::little_endian(f32_to_f16(0.5f), 2) + test::little_endian(high, 2) + low + nibbles;
    std::vector<float> of_super(256), of_small(256);
    decode(GgmlType::IQ4_XS, test::bytes_of(super), of_super, "super");
    decode(GgmlType::IQ4_NL, test::bytes_of(small), of_small, "small");
    EXPECT_EQ(of_super, of_small);
}

TEST(GgufBlocks, AnyBytesDecode) {
    std::mt19937 random(2);
    for (const GgmlType type : kWeightTypes) {
        const GgmlTypeRow& row = row_of(type);
        std::vector<std::byte> blocks(row.block_bytes * 64 + 1);
        std::vector<float> out(row.block_elements * 64);
        for (int round = 0; round < 50; ++round) {
            for (std::byte& byte : blocks) byte = std::byte(round == 0 ? 0xFF : random());
            const auto odd = std::span(blocks).subspan(1);  // unaligned
            decode(type, odd, out, "any");
            const std::vector<float> first = out;
            decode(type, odd, out, "any");
            EXPECT_EQ(std::memcmp(first.data(), out.data(), first.size() * sizeof(float)), 0);
        }
    }
}

TEST(GgufBlocks, RefusesWhatDoesNotFit) {
    std::vector<std::byte> blocks(144);
    std::vector<float> out(256);
    const auto problem = [&](GgmlType type, size_t bytes, size_t elements) {
        return error_of([&] {
            decode(type, std::span(blocks).first(bytes), std::span(out).first(elements), "m: w");
        });
    };
    EXPECT_EQ(problem(GgmlType::Q4_K, 144, 256), "");
    EXPECT_EQ(problem(GgmlType::Q4_K, 143, 256), "m: w: 143 bytes, 256 elements of Q4_K take 144");
    EXPECT_EQ(problem(GgmlType::Q4_K, 144, 255),
              "m: w: 255 elements are no whole blocks of Q4_K, which have 256");
    EXPECT_EQ(problem(GgmlType::I32, 4, 1), "m: w: type I32 holds no weights that we read");
    EXPECT_EQ(error_of([&] { checked_bytes(256, GgmlType(16), "m: w"); }),
              "m: w: type IQ2_XXS is not supported");
    EXPECT_EQ(error_of([&] { checked_bytes(SIZE_MAX, GgmlType::F32, "m: w"); }),
              "m: w: 18446744073709551615 elements overflow");
    EXPECT_EQ(error_of([&] { row_of(GgmlType(1000)); }), "GGUF type 1000 is unknown");
    EXPECT_EQ(find_ggml_type(4), nullptr);
}

}  // namespace
}  // namespace aerie
