// Models in GGUF: headers of files that llama.cpp wrote, and models in pieces.
#include "io/gguf/gguf.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <set>

#include "io/damage.h"
#include "io/gguf/config.h"
#include "io/gguf_golden.h"
#include "io/memory_source.h"
#include "io/write_gguf.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;

using test::error_of;
using test::GgufWriter;
using test::TestFolder;

// The head of a file, then zeros up to its length; counts the bytes that are read.
class HeadSource final : public ByteSource {
  public:
    HeadSource(std::string head, size_t size_bytes)
        : head_(std::move(head)), size_bytes_(size_bytes) {}
    size_t size_bytes() const override { return size_bytes_; }
    void read(size_t at, std::span<std::byte> out) const override {
        ASSERT_LE(at + out.size(), size_bytes_);
        std::memset(out.data(), 0, out.size());
        if (at < head_.size())
            std::memcpy(out.data(), head_.data() + at, std::min(out.size(), head_.size() - at));
        read_bytes += out.size();
    }
    mutable size_t read_bytes = 0;

  private:
    std::string head_;
    size_t size_bytes_;
};

std::string other_name(const GgufValue& value) {
    static const char* const kNames[] = {"uint8",  "int8",    "uint16", "int16",  "uint32",
                                         "int32",  "float32", "bool",   "string", "array",
                                         "uint64", "int64",   "float64"};
    return kNames[size_t(value.type())];
}

void expect_element(const GgufValue& value, size_t i, const Json& expected) {
    if (value.is_strings()) {
        EXPECT_EQ(value.string(i), *expected.string());
    } else if (value.is_numbers()) {
        EXPECT_EQ(value.number(i), expected.number());
    } else {
        EXPECT_EQ(value.boolean(i), *expected.boolean());
    }
}

void expect_value(const GgufValue& value, const Json& expected) {
    const std::string type = *expected.find("type")->string();
    ASSERT_EQ(value.is_array(), type == "array");
    if (!value.is_array()) {
        EXPECT_EQ(other_name(value), type);
        return expect_element(value, 0, *expected.find("value"));
    }
    EXPECT_EQ(other_name(value), *expected.find("of")->string());
    EXPECT_EQ(double(value.size()), expected.find("length")->number());
    const Json::Array& first = *expected.find("first")->array();
    for (size_t i = 0; i < first.size(); ++i) expect_element(value, i, first[i]);
}

void expect_tensor(const GgufTensor& tensor, const Json& expected) {
    EXPECT_EQ(name(tensor.type), *expected.find("type")->string());
    std::vector<int64_t> shape = test::integers_of(*expected.find("shape"));
    std::reverse(shape.begin(), shape.end());
    EXPECT_EQ(tensor.shape, shape);
    EXPECT_EQ(double(tensor.data.begin), expected.find("file_offset")->number());
    EXPECT_EQ(double(tensor.data.size_bytes), expected.find("bytes")->number());
}

TEST(Gguf, HeadersHoldWhatTheOtherProgramSees) {
    const Json heads = test::gguf_json("heads.json");
    EXPECT_EQ(heads.object()->size(), 6u);
    for (const auto& [file, expected] : *heads.object()) {
        SCOPED_TRACE(file);
        const fs::path head = test::gguf_dir() / fs::path(file).replace_extension(".head");
        const HeadSource source(read_text(head, 1 << 20),
                                size_t(expected.find("file_bytes")->number()));
        const GgufFile found = read_gguf(source, file);
        EXPECT_LE(source.read_bytes, 64u << 10) << "data was read";
        ASSERT_EQ(found.metadata.values().size(), expected.find("metadata")->object()->size());
        for (const auto& [key, value] : *expected.find("metadata")->object()) {
            SCOPED_TRACE(key);
            ASSERT_NE(found.metadata.find(key), nullptr);
            expect_value(*found.metadata.find(key), value);
        }
        const Json::Object& tensors = *expected.find("tensors")->object();
        ASSERT_EQ(found.tensors.size(), tensors.size());
        for (size_t i = 0; i < tensors.size(); ++i) {
            SCOPED_TRACE(tensors[i].first);
            EXPECT_EQ(found.tensors[i].name, tensors[i].first);
            expect_tensor(found.tensors[i], tensors[i].second);
        }
    }
}

TEST(Gguf, OpensAllPiecesWhicheverIsNamed) {
    const TestFolder folder;
    const Json heads = test::gguf_json("heads.json");
    std::vector<std::string> names;
    size_t tensors = 0;
    for (const auto& [file, expected] : *heads.object()) {
        if (file.find("split") == std::string::npos) continue;
        const fs::path head = test::gguf_dir() / fs::path(file).replace_extension(".head");
        std::string text = read_text(head, 1 << 20);
        text.resize(size_t(expected.find("file_bytes")->number()), char('0' + names.size()));
        folder.write(file, text);
        names.push_back(file);
        tensors += expected.find("tensors")->object()->size();
    }
    ASSERT_EQ(names.size(), 3u);
    for (const std::string& name : names) {
        const Gguf model = Gguf::open(folder.path() / name);
        EXPECT_EQ(model.pieces(), 3u);
        EXPECT_EQ(model.tensors().size(), tensors);
        EXPECT_EQ(model.metadata().string("general.architecture"), "qwen3");
        const GgufTensor* last = model.find("blk.1.ffn_up.weight");
        ASSERT_NE(last, nullptr);
        std::byte byte;
        model.read(*last, 5, {&byte, 1});
        EXPECT_EQ(byte, std::byte('2')) << "of the third piece";
    }
    fs::remove(folder.path() / names[1]);
    EXPECT_EQ(error_of([&] { Gguf::open(folder.path() / names[2]); }),
              (folder.path() / names[1]).string() + ": No such file or directory");
}

GgufWriter piece(uint32_t number, uint32_t count, uint32_t tensors, const std::string& name) {
    GgufWriter writer;
    writer.u32("split.no", number).u32("split.count", count).u32("split.tensors.count", tensors);
    writer.tensor({.name = name, .dims = {1}, .data = "1234"});
    return writer;
}

TEST(Gguf, PiecesMustBelongTogether) {
    const TestFolder folder;
    const std::string first = "m-00001-of-00002.gguf", second = "m-00002-of-00002.gguf";
    const auto problem = [&](const GgufWriter& a, const GgufWriter& b) {
        folder.write(first, a.file());
        folder.write(second, b.file());
        std::string message = error_of([&] { Gguf::open(folder.path() / first); });
        const std::string start = folder.path().string() + "/";
        return message.starts_with(start) ? message.substr(start.size()) : message;
    };
    EXPECT_EQ(problem(piece(0, 2, 2, "a"), piece(1, 2, 2, "b")), "");
    EXPECT_EQ(problem(piece(0, 2, 2, "a"), piece(0, 2, 2, "b")),
              second + ": split.no is 0, expected 1");
    EXPECT_EQ(problem(piece(0, 2, 2, "a"), piece(1, 3, 2, "b")),
              second + ": split.count is 3, expected 2");
    EXPECT_EQ(problem(piece(0, 2, 3, "a"), piece(1, 2, 3, "b")),
              first + ": split.tensors.count is 3, expected 2");
    EXPECT_EQ(problem(piece(0, 2, 2, "a"), piece(1, 2, 2, "a")),
              second + ": tensor 'a' is in another piece too");
    EXPECT_EQ(problem(GgufWriter(), piece(1, 2, 1, "b")), first + ": no key 'split.count'");
}

TEST(Gguf, NamesOfPieces) {
    const TestFolder folder;
    const auto problem = [&](const std::string& name, const GgufWriter& writer) {
        folder.write(name, writer.file());
        return error_of([&] { Gguf::open(folder.path() / name); });
    };
    EXPECT_EQ(problem("m-00001-of-00001.gguf", GgufWriter()), "");
    EXPECT_EQ(problem("m-00001-of-00001.gguf", piece(0, 1, 1, "a")), "");
    EXPECT_EQ(problem("m-0001-of-0001.gguf", GgufWriter()), "");
    EXPECT_EQ(problem("m-00001-of-0000x.gguf", GgufWriter()), "");
    EXPECT_EQ(problem("00001-of-00001.gguf", GgufWriter()), "");
    for (const char* name : {"m-00000-of-00002.gguf", "m-00003-of-00002.gguf",
                             "m-00001-of-00000.gguf", "m-00001-of-00513.gguf"})
        EXPECT_NE(problem(name, piece(0, 2, 1, "a")).find("counted from 1"), std::string::npos);
    EXPECT_NE(problem("m.gguf", piece(0, 3, 1, "a")).find("one of 3 pieces"), std::string::npos);
}

TEST(Gguf, SaysThatAFileHasBecomeShorter) {
    const TestFolder folder;
    GgufWriter writer;
    writer.tensor({.name = "w", .type = 8, .dims = {32, 2}, .data = std::string(68, '\1')});
    const fs::path path = folder.write("m.gguf", writer.file());
    const Gguf model = Gguf::open(path);
    EXPECT_EQ(model.size_bytes(), 68u);
    EXPECT_EQ(test::values_of(model, model.tensors()[0]).size(), 64u);
    fs::resize_file(path, fs::file_size(path) - 1);
    const std::string message = error_of([&] { test::values_of(model, model.tensors()[0]); });
    EXPECT_NE(message.find("has become shorter"), std::string::npos) << message;
}

// Either all layers have the window, or the layers that the file lists.
TEST(GgufConfig, WindowsMayBeOfSomeLayers) {
    const auto config = [](const char* type, size_t count) {
        const TestFolder folder;
        GgufWriter file;
        file.string("general.architecture", "qwen3").u32("qwen3.block_count", 2);
        for (const char* key : {"embedding_length", "context_length", "attention.head_count",
                                "feed_forward_length", "attention.sliding_window"})
            file.u32(std::string("qwen3.") + key, 64);
        file.number("qwen3.attention.layer_norm_rms_epsilon", 6, 0, 4);
        const std::string pattern(count, '\1');
        if (count > 0)
            file.array("qwen3.attention.sliding_window_pattern", *type == 'b' ? 7 : 0, count,
                       pattern);
        file.tensor({.name = "token_embd.weight", .dims = {1, 1}, .data = "1234"});
        return gguf_config(Gguf::open(folder.write("m.gguf", file.file())));
    };
    EXPECT_EQ(config("bool", 0).find("layer_types"), nullptr);
    EXPECT_EQ(config("bool", 2).find("layer_types")->array()->size(), 2u);
    for (const size_t count : {1, 3, 1 << 20})
        EXPECT_NE(error_of([&] { config("bool", count); }).find("one entry for each layer"),
                  std::string::npos);
    EXPECT_NE(error_of([&] { config("u8", 2); }).find("no array of booleans"), std::string::npos);
}

// A llama of two layers with heads of 16; `change` adds keys, or replaces those in `left_out`.
Json llama_config(const std::function<void(GgufWriter&)>& change,
                  const std::set<std::string>& left_out = {}) {
    const TestFolder folder;
    GgufWriter file;
    file.string("general.architecture", "llama");
    change(file);
    const std::pair<const char*, uint32_t> numbers[] = {
        {"block_count", 2},          {"embedding_length", 64},    {"context_length", 128},
        {"attention.head_count", 4}, {"feed_forward_length", 96}, {"attention.head_count_kv", 2}};
    for (const auto& [key, value] : numbers)
        if (!left_out.contains(key)) file.u32(std::string("llama.") + key, value);
    file.number("llama.attention.layer_norm_rms_epsilon", 6, 0x3727c5ac, 4);
    file.tensor({.name = "token_embd.weight", .dims = {1, 1}, .data = "1234"});
    return gguf_config(Gguf::open(folder.write("m.gguf", file.file())));
}

std::string numbers_of(const std::vector<uint32_t>& values) {
    std::string bytes;
    for (const uint32_t value : values) bytes += test::little_endian(value, 4);
    return bytes;
}

// Files may give a value that all layers share as one entry per layer.
TEST(GgufConfig, ReadsUniformArrays) {
    constexpr uint32_t kU32 = 4;
    const std::pair<const char*, const char*> keys[] = {
        {"attention.head_count", "num_attention_heads"},
        {"attention.head_count_kv", "num_key_value_heads"},
        {"feed_forward_length", "intermediate_size"}};
    for (const auto& [key, name] : keys) {
        const auto with = [&](const std::vector<uint32_t>& values) {
            return llama_config(
                [&, key = key](GgufWriter& file) {
                    file.array(std::string("llama.") + key, kU32, values.size(),
                               numbers_of(values));
                },
                {key});
        };
        EXPECT_EQ(with({4, 4}).find(name)->number(), 4) << key;
        for (const std::vector<uint32_t>& bad : {std::vector<uint32_t>{4, 2}, {4}, {4, 4, 4}, {}}) {
            const std::string message = error_of([&] { with(bad); });
            EXPECT_NE(message.find(std::string("'llama.") + key + "' "), message.npos) << message;
        }
        EXPECT_NE(error_of([&] { with({4, 2}); }).find("for all layers"), std::string::npos);
    }
}

TEST(GgufConfig, AWindowOfZeroIsNone) {
    const auto with = [](uint32_t window) {
        return llama_config(
            [&](GgufWriter& file) { file.u32("llama.attention.sliding_window", window); });
    };
    EXPECT_TRUE(with(0).find("sliding_window")->is_null());
    EXPECT_EQ(*with(0).find("model_type")->string(), "llama");
    EXPECT_EQ(with(24).find("sliding_window")->number(), 24);
    EXPECT_EQ(*with(24).find("model_type")->string(), "mistral");
}

// With and without the size of a head, which otherwise follows from other keys.
TEST(GgufConfig, RefusesRotationOfAPartOfEachHead) {
    const auto with = [](bool has_size, const char* key, uint32_t size) {
        llama_config([&](GgufWriter& file) {
            if (has_size) file.u32("llama.attention.key_length", 16);
            file.u32(std::string("llama.") + key, size);
        });
    };
    for (const bool has_size : {true, false})
        for (const char* key : {"rope.dimension_count", "attention.value_length"}) {
            EXPECT_EQ(error_of([&] { with(has_size, key, 16); }), "") << key;
            for (const uint32_t size : {0, 8, 32}) {
                const std::string message = error_of([&] { with(has_size, key, size); });
                EXPECT_NE(message.find(std::string("'llama.") + key + "' is"), message.npos)
                    << message;
            }
        }
}

}  // namespace
}  // namespace aerie
