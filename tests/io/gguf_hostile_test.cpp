// GGUF headers that lie: each gives one line, soon, in no more memory than the file's size
// justifies.
#include "io/bounded.h"
#include "io/gguf/file.h"
#include "io/memory_source.h"
#include "io/write_gguf.h"

namespace aerie {
namespace {

using test::error_of;
using test::GgufWriter;
using test::little_endian;
using test::NumberPlace;

// Reads the data that the header describes, which must lie in the file: otherwise the source ends
// the program.
void read_data(const test::MemorySource& source, const std::vector<GgufTensor>& tensors) {
    for (const GgufTensor& tensor : tensors) {
        std::vector<std::byte> data(tensor.data.size_bytes);
        source.read(tensor.data.begin, data);
        std::vector<float> values(size_t(tensor.rows() * tensor.row_elements()));
        if (row_of(tensor.type).dtype) decode(tensor.type, data, values, tensor.name);
    }
}

void read(const std::string& file) {
    const test::MemorySource source(file);
    read_data(source, read_gguf(source, "m.gguf").tensors);
}

size_t all_cases = 0;

// The error of a file, or "". It must be found within kMaxSeconds and within the memory that a
// header of its size may take.
std::string problem(const std::string& file) {
    const test::MemorySource source(file);
    std::vector<GgufTensor> tensors;
    std::string message;
    const std::clock_t start = std::clock();
    test::begin_count();
    message = error_of([&] { tensors = read_gguf(source, "m.gguf").tensors; });
    EXPECT_LE(test::most_since_begin(), (1 << 20) + 8 * file.size()) << message;
    EXPECT_LE(test::most_since_begin(), 256u << 20) << message;
    EXPECT_LE(double(std::clock() - start) / CLOCKS_PER_SEC, test::kMaxSeconds) << message;
    EXPECT_TRUE(message.empty() || message.starts_with("m.gguf: ")) << message;
    read_data(source, tensors);
    ++all_cases;
    return message;
}
std::string problem(const GgufWriter& writer) {
    return problem(writer.file());
}

GgufWriter seed() {
    GgufWriter writer;
    writer.u32("general.alignment", 32).string("s", "text").strings("words", {"a", "bc"});
    writer.array("ids", 5, 2, "12345678").number("b", 7, 1, 1).number("f", 6, 0, 4);
    writer.tensor({.name = "w", .dims = {2, 3}, .data = std::string(24, 'w')});
    writer.tensor({.name = "q", .type = 8, .dims = {64, 1}, .data = std::string(68, 'q')});
    return writer;
}

TEST(GgufHostile, EveryTruncationIsRefused) {
    const std::string file = seed().file();
    ASSERT_EQ(problem(file), "");
    for (size_t length = 0; length < file.size(); ++length)
        EXPECT_NE(problem(file.substr(0, length)), "") << length;
}

TEST(GgufHostile, SurvivesDamage) {
    test::expect_survives_damage(seed().file(), read);
}

// Every number of the header is changed, one after another. A few changes leave a good file:
// version 2, a value, another type of the same size.
TEST(GgufHostile, NoNumberIsTakenOnTrust) {
    const test::MarkedText header = seed().header();
    const std::string file = seed().file();
    size_t cases = 0, refused = 0;
    for (const NumberPlace& place : header.numbers) {
        const uint64_t most = place.bytes == 8 ? UINT64_MAX : (1ull << (8 * place.bytes)) - 1;
        for (const uint64_t value :
             {uint64_t(0), uint64_t(1), uint64_t(2), most, most - 1, most / 2, most / 2 + 1,
              most / 8 + 1, most - 31, uint64_t(65'537), uint64_t(file.size())}) {
            std::string damaged = file;
            damaged.replace(place.at, place.bytes, little_endian(value, place.bytes));
            if (damaged == file) continue;
            const std::string message = problem(damaged);
            ++cases;
            refused += !message.empty();
            if (value > 65'536 && !place.what.starts_with("value")) {
                EXPECT_NE(message, "") << place.what << " " << value;
            }
        }
    }
    EXPECT_GE(cases, 300u);
    EXPECT_GE(refused * 10, cases * 8);
}

TEST(GgufHostile, Alignment) {
    for (const uint64_t alignment : {0ull, 3ull, 48ull, 1ull << 21, 1ull << 40, 1ull << 63}) {
        const std::string message =
            problem(GgufWriter().number("general.alignment", 10, alignment, 8));
        EXPECT_NE(message, "") << alignment;
    }
    EXPECT_EQ(problem(GgufWriter().u32("general.alignment", 3)),
              "m.gguf: general.alignment 3, expected a power of two up to 1048576");
    EXPECT_EQ(problem(GgufWriter().string("general.alignment", "32")),
              "m.gguf: key 'general.alignment' is string, expected an integer");
    EXPECT_EQ(problem(GgufWriter().number("general.alignment", 5, uint32_t(-32), 4)),
              "m.gguf: general.alignment -32, expected a power of two up to 1048576");
}

TEST(GgufHostile, Twice) {
    EXPECT_EQ(problem(GgufWriter().u32("k", 1).u32("k", 1)), "m.gguf: key 'k' comes twice");
    GgufWriter writer;
    for (int i = 0; i < 2; ++i) writer.tensor({.name = "w", .dims = {1}, .data = "1234"});
    EXPECT_EQ(problem(writer), "m.gguf: tensor 'w' comes twice");
}

std::string problem_of_two(uint64_t a, uint64_t b) {
    GgufWriter writer;
    writer.tensor({.name = "a", .dims = {16}, .data = std::string(64, 'a'), .offset = a});
    writer.tensor({.name = "b", .dims = {8}, .data = std::string(96, 'b'), .offset = b});
    return problem(writer);
}

TEST(GgufHostile, PlacesOfTensors) {
    EXPECT_EQ(problem_of_two(0, 64), "");
    EXPECT_EQ(problem_of_two(32, 0), "");
    for (const uint64_t b : {0u, 32u})
        EXPECT_NE(problem_of_two(0, b).find("overlaps"), std::string::npos) << b;
    EXPECT_NE(problem_of_two(0, 96).find("gap"), std::string::npos);
    EXPECT_NE(problem_of_two(32, 96).find("gap"), std::string::npos) << "in front of the first";
    EXPECT_EQ(problem_of_two(0, 65), "m.gguf: tensor 'b': offset 65 is no multiple of 32");
    for (const uint64_t b : {160ull, 1ull << 32, 1ull << 63, ~0ull - 31})
        EXPECT_NE(problem_of_two(0, b).find("do not lie in the 160 bytes"), std::string::npos) << b;
}

TEST(GgufHostile, Shapes) {
    const auto of_shape = [](std::vector<uint64_t> dims, uint32_t type = 0) {
        GgufWriter writer;
        writer.tensor({.name = "w", .type = type, .dims = std::move(dims), .data = "1234"});
        return problem(writer);
    };
    constexpr uint64_t kLarge = 1ull << 32;
    EXPECT_EQ(of_shape({1, 1, 1, 1}), "");
    EXPECT_EQ(of_shape({}), "m.gguf: tensor 'w': 0 dimensions, expected 1 to 4");
    EXPECT_EQ(of_shape({1, 1, 1, 1, 1}), "m.gguf: tensor 'w': 5 dimensions, expected 1 to 4");
    EXPECT_EQ(of_shape({0}), "m.gguf: tensor 'w': a dimension of 0");
    EXPECT_EQ(of_shape({1, UINT64_MAX}), "m.gguf: tensor 'w': a dimension of -1");
    EXPECT_EQ(of_shape({kLarge, kLarge}),
              "m.gguf: tensor 'w': shape [4294967296, 4294967296] overflows");
    EXPECT_EQ(of_shape({kLarge / 2, kLarge / 2}),
              "m.gguf: tensor 'w': shape [2147483648, 2147483648] overflows")
        << "its bytes do";
    EXPECT_EQ(of_shape({2}),
              "m.gguf: tensor 'w': 8 bytes from offset 0 on do not lie in the 4 bytes of data; the "
              "file is cut short or damaged: download it again");
    EXPECT_EQ(of_shape({33, 32}, 8),
              "m.gguf: tensor 'w': 33 elements are no whole blocks of Q8_0, which have 32");
}

TEST(GgufHostile, LengthsBeyondTheFile) {
    const std::string huge = little_endian(1ull << 60, 8);
    EXPECT_NE(problem(GgufWriter().value("k", 8, huge)).find("in key 'k'; the file is cut short"),
              std::string::npos);
    EXPECT_NE(problem(GgufWriter().value("k", 9, little_endian(8, 4) + huge)), "");
    EXPECT_NE(problem(GgufWriter().value("k", 9, little_endian(0, 4) + huge)), "");
    EXPECT_NE(problem(GgufWriter().array("k", 10, 2, "12345678")), "");
    EXPECT_NE(problem(GgufWriter().array("k", 8, 3, std::string(16, '\0'))), "");
    EXPECT_EQ(problem(GgufWriter().u32(std::string(65'535, 'k'), 1)), "");
    const std::string message = problem(GgufWriter().u32(std::string(65'536, 'k'), 1));
    EXPECT_EQ(message, "m.gguf: key 0 has 65536 bytes, expected at most 65535");
}

TEST(GgufHostile, ArraysOfArrays) {
    std::string nested = little_endian(1, 8);
    for (int depth = 0; depth < 1000; ++depth)
        nested = little_endian(9, 4) + little_endian(1, 8) + nested;
    EXPECT_EQ(problem(GgufWriter().value("k", 9, nested)), "m.gguf: key 'k' is an array of arrays");
}

TEST(GgufHostile, Booleans) {
    EXPECT_EQ(problem(GgufWriter().number("k", 7, 2, 1)),
              "m.gguf: key 'k' holds a boolean that is neither 0 nor 1");
    EXPECT_NE(problem(GgufWriter().array("k", 7, 3, std::string("\0\1\xFF", 3))), "");
}

TEST(GgufHostile, MillionsOfEmptyStrings) {
    constexpr size_t kCount = 4'000'000;
    const std::string empty = std::string(kCount * 8, '\0');
    EXPECT_EQ(problem(GgufWriter().array("k", 8, kCount, empty)), "");
}

TEST(GgufHostile, ManyKeys) {
    GgufWriter writer;
    for (int i = 0; i < 65'536; ++i) writer.array(std::to_string(i), 8, 0, "");
    EXPECT_EQ(problem(writer), "");
    writer.u32("one more", 1);
    EXPECT_EQ(problem(writer), "m.gguf: 65537 keys, expected at most 65536");
    writer.key_count = UINT64_MAX;
    EXPECT_EQ(problem(writer), "m.gguf: 18446744073709551615 keys, expected at most 65536");
}

TEST(GgufHostile, ManyTensors) {
    GgufWriter writer;
    writer.alignment = 1;
    writer.u32("general.alignment", 1);
    for (int i = 0; i < 65'536; ++i)
        writer.tensor({.name = std::to_string(i), .type = 24, .dims = {1}, .data = "x"});
    EXPECT_EQ(problem(writer), "");
    writer.tensor({.name = "one more", .type = 24, .dims = {1}, .data = "x"});
    EXPECT_EQ(problem(writer), "m.gguf: 65537 tensors, expected at most 65536");
    GgufWriter few;
    few.tensor_count = 65'536;
    EXPECT_EQ(problem(few), "m.gguf: 65536 tensors, and 0 bytes of the file are left");
}

TEST(GgufHostile, LargeHeaders) {
    const std::string text(90'000'000, 'x');
    EXPECT_EQ(problem(GgufWriter().string("k", text).file()), "");
    const std::string message = problem(GgufWriter().string("k", text).string("l", text).file());
    EXPECT_EQ(message, "m.gguf: header of more than 100000000 bytes");
}

// Vocabularies as large as those of large models.
TEST(GgufHostile, VocabulariesAreReadAtOnce) {
    std::vector<std::string> tokens, merges;
    for (int i = 0; i < 280'000; ++i) tokens.push_back("token" + std::to_string(i));
    for (int i = 0; i < 500'000; ++i) merges.push_back("left right" + std::to_string(i));
    const std::string file =
        GgufWriter().strings("tokens", tokens).strings("merges", merges).file();
    EXPECT_EQ(problem(file), "");
    const test::MemorySource source(file);
    const GgufMetadata metadata = read_gguf(source, "m.gguf").metadata;
    EXPECT_EQ(metadata.strings("tokens").string(279'999), "token279999");
    EXPECT_EQ(metadata.strings("merges").string(123'456), "left right123456");
}

// Errors do not repeat control characters of a file, nor long names.
TEST(GgufHostile, NamesInErrors) {
    const std::string name = "\x1B[2J\n" + std::string(5000, 'x');
    const std::string message =
        problem(GgufWriter().tensor({.name = name, .type = 99, .dims = {1}}));
    EXPECT_TRUE(message.starts_with("m.gguf: tensor '?[2J?xxx")) << message;
    EXPECT_LT(message.size(), 300u);
}

// The cases of SurvivesDamage are not counted.
TEST(GgufHostile, ThereAreManyCases) {
    EXPECT_GE(all_cases, 500u);
    std::printf("%zu cases\n", all_cases);
}

}  // namespace
}  // namespace aerie
