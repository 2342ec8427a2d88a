// One GGUF file: values of every type, tensors and their places, and what is refused.
#include "io/gguf/file.h"

#include <bit>

#include "io/damage.h"
#include "io/memory_source.h"
#include "io/write_gguf.h"

namespace aerie {
namespace {

using test::error_of;
using test::GgufWriter;
using test::little_endian;

GgufFile read(const std::string& file) {
    return read_gguf(test::MemorySource(file), "m.gguf");
}
std::string problem(const GgufWriter& writer) {
    return error_of([&] { read(writer.file()); });
}

TEST(GgufFile, ReadsEveryKindOfNumber) {
    const GgufMetadata metadata = read(GgufWriter()
                                           .number("u8", 0, 0xFF, 1)
                                           .number("i8", 1, 0xFF, 1)
                                           .number("u16", 2, 0x8001, 2)
                                           .number("i16", 3, 0x8001, 2)
                                           .number("u32", 4, 0x80000001, 4)
                                           .number("i32", 5, 0x80000001, 4)
                                           .number("u64", 10, 1ull << 63, 8)
                                           .number("i64", 11, 1ull << 63, 8)
                                           .number("f32", 6, std::bit_cast<uint32_t>(0.5f), 4)
                                           .number("f64", 12, std::bit_cast<uint64_t>(-0.1), 8)
                                           .number("no", 7, 0, 1)
                                           .number("yes", 7, 1, 1)
                                           .file())
                                      .metadata;
    EXPECT_EQ(metadata.integer("u8"), 255);
    EXPECT_EQ(metadata.integer("i8"), -1);
    EXPECT_EQ(metadata.integer("u16"), 0x8001);
    EXPECT_EQ(metadata.integer("i16"), -0x7FFF);
    EXPECT_EQ(metadata.integer("u32"), 0x80000001);
    EXPECT_EQ(metadata.integer("i32"), -0x7FFFFFFF);
    EXPECT_EQ(metadata.integer("i64"), INT64_MIN);
    EXPECT_EQ(metadata.number("u64"), 0x1p63);
    EXPECT_EQ(metadata.number("i64"), -0x1p63);
    EXPECT_EQ(metadata.number("f32"), 0.5);
    EXPECT_EQ(metadata.number("f64"), -0.1);
    EXPECT_FALSE(metadata.boolean("no"));
    EXPECT_TRUE(metadata.boolean("yes"));
    EXPECT_EQ(metadata.values().size(), 12u);
    EXPECT_EQ(error_of([&] { metadata.integer("u64"); }),
              "m.gguf: key 'u64' does not fit in 63 bits");
}

TEST(GgufFile, ReadsStringsAndArrays) {
    const std::string long_text(200'000, 'x');  // longer than a window of the reader
    const GgufMetadata metadata =
        read(GgufWriter()
                 .string("text", "caf\xC3\xA9")
                 .string("empty", "")
                 .string("long", long_text)
                 .strings("words", {"one", "", "three"})
                 .strings("none", {})
                 .array("i32", 5, 2, little_endian(uint32_t(-7), 4) + little_endian(8, 4))
                 .array("f32", 6, 1, little_endian(std::bit_cast<uint32_t>(-1000.0f), 4))
                 .array("flags", 7, 3, std::string("\0\1\1", 3))
                 .file())
            .metadata;
    EXPECT_EQ(metadata.string("text"), "caf\xC3\xA9");
    EXPECT_EQ(metadata.string("empty"), "");
    EXPECT_EQ(metadata.string("long"), long_text);
    const GgufValue& words = metadata.strings("words");
    ASSERT_EQ(words.size(), 3u);
    EXPECT_EQ(words.string(0), "one");
    EXPECT_EQ(words.string(1), "");
    EXPECT_EQ(words.string(2), "three");
    EXPECT_EQ(metadata.strings("none").size(), 0u);
    EXPECT_EQ(metadata.integers("i32").integer(0), -7);
    EXPECT_EQ(metadata.numbers("i32").number(1), 8);
    EXPECT_EQ(metadata.numbers("f32").number(0), -1000);
    EXPECT_TRUE(metadata.find("flags")->boolean(2));
}

TEST(GgufFile, SaysWhatAKeyIs) {
    const GgufMetadata metadata =
        read(GgufWriter().u32("n", 1).string("s", "x").strings("a", {"x", "y"}).file()).metadata;
    EXPECT_EQ(metadata.find("x"), nullptr);
    EXPECT_EQ(error_of([&] { metadata.integer("x"); }), "m.gguf: no key 'x'");
    EXPECT_EQ(error_of([&] { metadata.integer("s"); }),
              "m.gguf: key 's' is string, expected an integer");
    EXPECT_EQ(error_of([&] { metadata.string("a"); }),
              "m.gguf: key 'a' is array of 2 string, expected a string");
    EXPECT_EQ(error_of([&] { metadata.strings("n"); }),
              "m.gguf: key 'n' is u32, expected an array of strings");
    for (const auto& wrong :
         {error_of([&] { metadata.number("s"); }), error_of([&] { metadata.boolean("n"); }),
          error_of([&] { metadata.numbers("a"); }), error_of([&] { metadata.integers("n"); })})
        EXPECT_NE(wrong, "");
}

TEST(GgufFile, PlacesTensors) {
    for (const uint32_t version : {2u, 3u}) {
        GgufWriter writer;
        writer.version = version;
        writer.alignment = 64;
        writer.u32("general.alignment", 64);
        writer.tensor({.name = "a", .dims = {2, 3}, .data = "123456781234567812345678"});
        writer.tensor({.name = "b", .type = 8, .dims = {32, 1, 2}, .data = std::string(68, 'q')});
        const std::string file = writer.file();
        const std::vector<GgufTensor> tensors = read(file).tensors;
        ASSERT_EQ(tensors.size(), 2u);
        EXPECT_EQ(tensors[0].shape_text(), "[3, 2]");
        EXPECT_EQ(tensors[0].data.begin % 64, 0u);
        EXPECT_EQ(file.substr(tensors[0].data.begin, 24), "123456781234567812345678");
        EXPECT_EQ(tensors[1].shape_text(), "[2, 1, 32]");
        EXPECT_EQ(tensors[1].type, GgmlType::Q8_0);
        EXPECT_EQ(tensors[1].rows(), 2);
        EXPECT_EQ(tensors[1].row_bytes(), 34u);
        EXPECT_EQ(tensors[1].data.end(), file.size());
        const GgufTensor part = part_of(tensors[1], 1, "part");
        EXPECT_EQ(part.shape_text(), "[1, 32]");
        EXPECT_EQ(part.data.begin, tensors[1].data.begin + 34);
        EXPECT_EQ(part.data.size_bytes, 34u);
    }
}

TEST(GgufFile, OrderOfTensorsAndDataMayDiffer) {
    GgufWriter writer;
    writer.tensor({.name = "a", .dims = {8}, .data = std::string(32, 'b'), .offset = 32});
    writer.tensor({.name = "b", .dims = {8}, .data = std::string(32, 'a'), .offset = 0});
    const std::string file = writer.file() + "what follows";
    EXPECT_EQ(file[read(file).tensors[0].data.begin], 'a');
}

TEST(GgufFile, HeadersAloneAreFiles) {
    EXPECT_EQ(read(GgufWriter().file()).tensors.size(), 0u);
    EXPECT_EQ(read(GgufWriter().u32("n", 1).file()).metadata.integer("n"), 1);
}

TEST(GgufFile, RefusesOtherFormats) {
    const auto of_text = [](const std::string& text) { return error_of([&] { read(text); }); };
    EXPECT_EQ(of_text(""), "m.gguf: not in GGUF format");
    EXPECT_EQ(of_text("GGU"), "m.gguf: not in GGUF format");
    EXPECT_EQ(of_text("ggjt" + std::string(60, '\0')), "m.gguf: not in GGUF format");
    EXPECT_EQ(
        of_text("GGUF"),
        "m.gguf: ends at byte 4, in its header; the file is cut short or damaged: download it "
        "again");
    GgufWriter writer;
    for (const uint32_t version : {0u, 1u, 4u, UINT32_MAX}) {
        writer.version = version;
        EXPECT_EQ(problem(writer),
                  "m.gguf: GGUF version " + std::to_string(version) + ", expected 2 or 3");
    }
    writer.version = 3u << 24;
    EXPECT_EQ(problem(writer),
              "m.gguf: a GGUF file for big-endian machines, which are not supported");
}

TEST(GgufFile, NamesTypesThatItCannotRead) {
    EXPECT_EQ(problem(GgufWriter().tensor({.name = "w", .type = 16, .dims = {256}})),
              "m.gguf: tensor 'w': type IQ2_XXS is not supported");
    EXPECT_EQ(problem(GgufWriter().tensor({.name = "w", .type = 4, .dims = {256}})),
              "m.gguf: tensor 'w': type 4 is unknown");
    EXPECT_EQ(problem(GgufWriter().value("k", 13, "1234")),
              "m.gguf: key 'k' is of type 13, expected 0 to 12");
}

}  // namespace
}  // namespace aerie
