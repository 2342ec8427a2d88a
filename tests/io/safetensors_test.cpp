// Safetensors: a round trip, and every way in which a header can lie.
#include "io/safetensors.h"

#include "io/damage.h"
#include "io/memory_source.h"
#include "io/write_files.h"

namespace aerie {
namespace {

using test::data_of;
using test::error_of;
using test::safetensors_entry;
using test::safetensors_file;
using test::safetensors_header;
using test::SafetensorsWriter;

std::vector<NamedTensor> read(const std::string& file) {
    return read_safetensors(test::MemorySource(file), "m.safetensors");
}
std::string problem(const std::string& header, const std::string& data = "") {
    return error_of([&] { read(safetensors_file(header, data)); });
}

TEST(Safetensors, ReadsEveryType) {
    const std::string file = SafetensorsWriter()
                                 .add("a", "F32", "[2]", "12345678")
                                 .add("b", "F16", "[1, 3]", "abcdef")
                                 .add("c", "BF16", "[]", "xy")
                                 .add("d", "I64", "[1]", "87654321")
                                 .add("e", "I32", "[1,1,1,1,1,1,1,1]", "iiii")
                                 .add("f", "BOOL", "[3]", std::string("\0\1\0", 3))
                                 .add("g", "F32", "[0, 5]", "")
                                 .file();
    const auto tensors = read(file);
    ASSERT_EQ(tensors.size(), 7u);
    EXPECT_EQ(tensors[1].name, "b");
    EXPECT_EQ(tensors[1].dtype, DType::F16);
    EXPECT_EQ(tensors[1].shape_text(), "[1, 3]");
    EXPECT_EQ(data_of(file, tensors[1]), "abcdef");
    EXPECT_EQ(tensors[2].shape_text(), "[]");
    EXPECT_EQ(data_of(file, tensors[2]), "xy");
    EXPECT_EQ(tensors[5].dtype, DType::Bool);
    EXPECT_EQ(tensors[6].data.size_bytes, 0u);
}

TEST(Safetensors, OrderOfHeaderAndDataMayDiffer) {
    const std::string header = safetensors_header({safetensors_entry("b", "F32", "[1]", 4, 8),
                                                   "\"__metadata__\":{\"format\":\"pt\"}",
                                                   safetensors_entry("a", "F32", "[1]", 0, 4)});
    const std::string file = safetensors_file(header + "   ", "AAAABBBB");
    const auto tensors = read(file);
    ASSERT_EQ(tensors.size(), 2u);
    EXPECT_EQ(data_of(file, tensors[0]), "BBBB");
    EXPECT_EQ(data_of(file, tensors[1]), "AAAA");
}

TEST(Safetensors, RefusesBadHeaderLengths) {
    for (const std::string& file :
         {std::string(), std::string("\1\0\0", 3), std::string(8, '\xFF'),
          test::little_endian(3, 8) + "{}", test::little_endian(100'000'001, 8) + "{}"}) {
        const std::string message = error_of([&] { read(file); });
        EXPECT_TRUE(message.starts_with("m.safetensors: ")) << message;
    }
    const std::string huge = test::little_endian(100'000'001, 8) + std::string(100'000'001, ' ');
    EXPECT_EQ(error_of([&] { read(huge); }),
              "m.safetensors: header of 100000001 bytes, expected at most 100000000");
}

TEST(Safetensors, RefusesHeadersThatAreNotWhatTheyShouldBe) {
    const std::string offsets = "\"data_offsets\":[0,4]";
    for (const std::string& header :
         {std::string("[]"), std::string("null"), std::string("{\"a\":1}"),
          std::string("{\"__metadata__\":1}"), std::string("{\"__metadata__\":{\"a\":1}}"),
          "{\"a\":{\"shape\":[1]," + offsets + "}}",
          "{\"a\":{\"dtype\":1,\"shape\":[1]," + offsets + "}}",
          "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"x\":0," + offsets + "}}",
          "{\"a\":{\"dtype\":\"F32\",\"shape\":1," + offsets + "}}",
          "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1]," + offsets + "}}",
          "{\"a\":{\"dtype\":\"F32\",\"shape\":[0.5]," + offsets + "}}",
          "{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"]," + offsets + "}}",
          std::string("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,4]}}"),
          std::string("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}"),
          std::string("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}"),
          std::string("{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,1e30]}}")}) {
        EXPECT_NE(problem(header, "1234"), "") << header;
    }
}

TEST(Safetensors, RefusesUnknownTypes) {
    for (const char* dtype : {"F64", "F8_E4M3", "U8", "f32", ""}) {
        const std::string message =
            problem(safetensors_header({safetensors_entry("a", dtype, "[1]", 0, 4)}), "1234");
        EXPECT_NE(message.find("expected F32"), std::string::npos) << message;
    }
}

TEST(Safetensors, RefusesShapesThatOverflow) {
    for (const char* shape : {"[4294967296,4294967296]", "[9223372036854775807,2]",
                              "[0,4294967296,4294967296]", "[2305843009213693952,2,4]"}) {
        const std::string message =
            problem(safetensors_header({safetensors_entry("a", "F32", shape, 0, 4)}), "1234");
        EXPECT_NE(message.find("overflows"), std::string::npos) << message;
    }
    EXPECT_NE(
        problem(safetensors_header({safetensors_entry("a", "F32", "[1,1,1,1,1,1,1,1,1]", 0, 4)}),
                "1234")
            .find("9 dimensions"),
        std::string::npos);
}

TEST(Safetensors, NamesTensorAndSizesWhenTheyDisagree) {
    EXPECT_EQ(
        problem(safetensors_header({safetensors_entry("w", "F16", "[2, 3]", 0, 8)}), "12345678"),
        "m.safetensors: tensor 'w': shape [2, 3] of f16 needs 12 bytes, data_offsets give 8");
}

TEST(Safetensors, DataMustBeTiledExactly) {
    const auto two = [](uint64_t a, uint64_t b) {
        return safetensors_header({safetensors_entry("a", "F32", "[1]", a, a + 4),
                                   safetensors_entry("b", "F32", "[1]", b, b + 4)});
    };
    EXPECT_EQ(problem(two(0, 4), "12345678"), "");
    EXPECT_EQ(problem(two(0, 2), "123456"),
              "m.safetensors: the data of tensor 'b' overlaps another's, at byte 2 of the data");
    EXPECT_EQ(problem(two(0, 0), "1234"),
              "m.safetensors: the data of tensor 'b' overlaps another's, at byte 0 of the data");
    EXPECT_EQ(problem(two(0, 5), "123456789"),
              "m.safetensors: the data of tensor 'b' has a gap before it, at byte 4 of the data");
    EXPECT_EQ(problem(two(0, 4), "123456789"),
              "m.safetensors: 9 bytes of data, the tensors take 8");
    EXPECT_EQ(
        problem(two(0, 4), "1234567"),
        "m.safetensors: tensor 'b': data_offsets outside the 7 bytes of data; the file is cut "
        "short or damaged: download it again");
    EXPECT_EQ(problem("{}", ""), "");
    EXPECT_NE(problem("{}", "x"), "");
}

TEST(Safetensors, RefusesDuplicateNamesAndTooManyTensors) {
    const std::string empty = safetensors_entry("a", "F32", "[0]", 0, 0);
    EXPECT_EQ(problem(safetensors_header({empty, empty})),
              "m.safetensors: header: duplicate key 'a'");
    SafetensorsWriter writer;
    for (int i = 0; i < 65'538; ++i) writer.add(std::to_string(i), "F32", "[0]", "");
    EXPECT_EQ(error_of([&] { read(writer.file()); }), "m.safetensors: more than 65536 tensors");
}

TEST(Safetensors, SurvivesDamage) {
    test::expect_survives_damage(SafetensorsWriter()
                                     .add("a.weight", "F32", "[2, 1]", "12345678")
                                     .add("b", "BOOL", "[3]", "abc")
                                     .add("c", "I64", "[0]", "")
                                     .file(),
                                 read);
}

}  // namespace
}  // namespace aerie
