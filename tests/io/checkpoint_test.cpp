// Checkpoints: which file is taken, shards and their index, lookups, the bundled models.
#include "io/checkpoint.h"

#include "io/damage.h"
#include "io/json.h"
#include "io/write_files.h"
#include "paths.h"

namespace aerie {
namespace {

using test::error_of;
using test::SafetensorsWriter;
using test::TestFolder;
using test::TorchTensor;

std::string one_tensor(const std::string& name, const std::string& data = "1234") {
    return SafetensorsWriter().add(name, "F32", "[1]", data).file();
}
std::string index_of(const std::vector<std::pair<std::string, std::string>>& shards) {
    Json::Object map;
    for (const auto& [tensor, shard] : shards) map.emplace_back(tensor, shard);
    Json index;
    index.set("metadata", Json::Object{{"total_size", 8}});
    index.set("weight_map", map);
    return index.dump();
}
std::string problem(const TestFolder& folder) {
    return error_of([&] { Checkpoint::open(folder.path()); });
}
constexpr const char* kIndex = "model.safetensors.index.json";

TEST(Checkpoint, TakesSafetensorsBeforeTorch) {
    const TestFolder folder;
    const std::vector<TorchTensor> tensors = {{.name = "torch", .shape = {1}, .data = "1234"}};
    folder.write("pytorch_model.bin", test::torch_file(tensors));
    EXPECT_NE(Checkpoint::open(folder.path()).find("torch"), nullptr);
    folder.write(kIndex, index_of({{"sharded", "a.safetensors"}}));
    folder.write("a.safetensors", one_tensor("sharded"));
    EXPECT_NE(Checkpoint::open(folder.path()).find("sharded"), nullptr);
    folder.write("model.safetensors", one_tensor("single"));
    const Checkpoint checkpoint = Checkpoint::open(folder.path());
    EXPECT_NE(checkpoint.find("single"), nullptr);
    EXPECT_EQ(checkpoint.find("sharded"), nullptr);
    EXPECT_EQ(checkpoint.size_bytes(), 4u);
}

TEST(Checkpoint, SaysWhatIsMissing) {
    const TestFolder folder;
    EXPECT_EQ(problem(folder),
              folder.path().string() + ": no model.safetensors or pytorch_model.bin");
}

TEST(Checkpoint, ReadsShardsOfBothFormats) {
    const TestFolder folder;
    folder.write("a.bin", test::torch_file({{.name = "a", .shape = {1}, .data = "aaaa"}}));
    folder.write("b.bin", test::torch_file({{.name = "b", .shape = {1}, .data = "bbbb"}}));
    folder.write("pytorch_model.bin.index.json", index_of({{"a", "a.bin"}, {"b", "b.bin"}}));
    EXPECT_EQ(Checkpoint::open(folder.path()).tensors().size(), 2u);
    folder.write("a.safetensors", one_tensor("a"));
    folder.write(
        "b.safetensors",
        SafetensorsWriter().add("b", "F32", "[1]", "bbbb").add("x", "F32", "[0]", "").file());
    folder.write(kIndex, index_of({{"a", "a.safetensors"}, {"b", "b.safetensors"}}));
    const Checkpoint checkpoint = Checkpoint::open(folder.path());
    EXPECT_EQ(checkpoint.tensors().size(), 2u)
        << "a tensor that the index does not name is left out";
}

TEST(Checkpoint, IndexAndShardsMustAgree) {
    const TestFolder folder;
    folder.write("a.safetensors", one_tensor("a"));
    folder.write("b.safetensors", one_tensor("a"));
    folder.write("c.safetensors", one_tensor("c"));
    folder.write(kIndex, index_of({{"a", "a.safetensors"}, {"b", "a.safetensors"}}));
    const std::string index = (folder.path() / kIndex).string();
    EXPECT_EQ(problem(folder), index + ": tensor 'b' is not in 'a.safetensors'");
    folder.write(kIndex, index_of({{"a", "c.safetensors"}, {"c", "a.safetensors"}}));
    EXPECT_NE(problem(folder), "");
    folder.write(kIndex, index_of({{"a", "a.safetensors"}, {"b", "b.safetensors"}}));
    EXPECT_EQ(problem(folder),
              (folder.path() / "b.safetensors").string() + ": tensor 'a' is in two shards");
    folder.write(kIndex, index_of({{"a", "missing.safetensors"}}));
    EXPECT_NE(problem(folder), "");
    for (const char* text : {"{}", "[]", "{\"weight_map\":[]}", "{\"weight_map\":{}}",
                             "{\"weight_map\":{\"a\":1}}", "{", "{\"weight_map\":{\"a\":null}}"}) {
        folder.write(kIndex, text);
        EXPECT_TRUE(problem(folder).starts_with(index)) << text;
    }
}

TEST(Checkpoint, ShardNamesStayInTheFolder) {
    const TestFolder folder;
    const auto outside = folder.write("outside.safetensors", one_tensor("a"));
    const auto model = folder.path() / "model";
    for (const std::string& shard :
         {std::string("../outside.safetensors"), outside.string(), std::string(".."),
          std::string("."), std::string(""), std::string("sub/../../outside.safetensors"),
          std::string("..\\outside.safetensors"), std::string("a\0b", 3),
          std::string("link.safetensors")}) {
        folder.write(std::string("model/") + kIndex, index_of({{"a", shard}}));
        std::filesystem::remove(model / "link.safetensors");
        std::filesystem::create_symlink(outside, model / "link.safetensors");
        EXPECT_NE(error_of([&] { Checkpoint::open(model); }), "") << shard;
    }
}

TEST(Checkpoint, SingleFileMayNotLinkOutsideEither) {
    const TestFolder folder;
    std::filesystem::create_directory(folder.path() / "model");
    std::filesystem::create_symlink(folder.write("outside.safetensors", one_tensor("a")),
                                    folder.path() / "model" / "model.safetensors");
    const std::string message = error_of([&] { Checkpoint::open(folder.path() / "model"); });
    EXPECT_NE(message.find("outside the model folder"), std::string::npos) << message;
}

TEST(Checkpoint, GetChecksShapeAndType) {
    const TestFolder folder;
    folder.write("model.safetensors", SafetensorsWriter()
                                          .add("w", "F16", "[2, 3]", "abcdefghijkl")
                                          .add("ids", "I64", "[1]", "12345678")
                                          .file());
    const Checkpoint checkpoint = Checkpoint::open(folder.path());
    const std::string file = (folder.path() / "model.safetensors").string();
    const std::vector<int64_t> good = {2, 3}, turned = {3, 2}, one = {1};
    EXPECT_EQ(checkpoint.get("w", good).data.size_bytes, 12u);
    EXPECT_EQ(error_of([&] { checkpoint.get("w", turned); }),
              file + ": tensor 'w' has shape [2, 3], expected [3, 2]");
    EXPECT_EQ(error_of([&] { checkpoint.get("ids", one); }),
              file + ": tensor 'ids' is i64, expected f32, f16 or bf16");
    EXPECT_EQ(error_of([&] { checkpoint.get("v", one); }),
              folder.path().string() + ": no tensor 'v' of shape [1]");
}

TEST(Checkpoint, DataIsReadAndNotMapped) {
    const TestFolder folder;
    const auto file = folder.write(
        "model.safetensors",
        SafetensorsWriter().add("a", "F32", "[1]", "aaaa").add("b", "F32", "[1]", "bbbb").file());
    const Checkpoint checkpoint = Checkpoint::open(folder.path());
    const NamedTensor& a = *checkpoint.find("a");
    const NamedTensor& b = *checkpoint.find("b");
    const auto data = checkpoint.read(a);
    std::filesystem::resize_file(file, b.data.begin + 1);
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(data.get()), 4), "aaaa");
    EXPECT_EQ(error_of([&] { checkpoint.read(b); }),
              file.string() + ": ends at byte " + std::to_string(b.data.begin + 1) +
                  "; it has become shorter while it was in use");
}

TEST(Checkpoint, LinksThatLeadNowhereAreErrors) {
    for (const char* name : {"model.safetensors", "model.safetensors.index.json"}) {
        const TestFolder folder;
        folder.write("pytorch_model.bin",
                     test::torch_file({{.name = "torch", .shape = {1}, .data = "1234"}}));
        EXPECT_EQ(problem(folder), "");
        std::filesystem::create_symlink("absent", folder.path() / name);
        EXPECT_EQ(problem(folder), (folder.path() / name).string() + ": No such file or directory");
        std::filesystem::remove(folder.path() / name);
        std::filesystem::create_symlink(name, folder.path() / name);
        EXPECT_NE(problem(folder).find(name), std::string::npos);
    }
}

TEST(Checkpoint, ComparesChecksumsOfTorchStorages) {
    const std::vector<TorchTensor> tensors = {
        {.name = "w", .shape = {2}, .data = "12345678"},
        {.name = "v", .shape = {1}, .data = {}, .key = "0", .elements = 2, .offset = 1}};
    std::string file = test::torch_file(test::torch_pickle(tensors), tensors, {}, true);
    const TestFolder folder;
    const auto path = folder.write("pytorch_model.bin", file);
    const Checkpoint good = Checkpoint::open(folder.path());
    good.read(*good.find("w"));
    good.read(*good.find("v"));
    file[file.find("12345678")] ^= 1;  // outside of v, but in its storage
    folder.write("pytorch_model.bin", file);
    const Checkpoint bad = Checkpoint::open(folder.path());
    for (const std::string name : {"w", "v"})
        EXPECT_EQ(error_of([&] { bad.read(*bad.find(name)); }),
                  path.string() + ": tensor '" + name + "' is damaged: its checksum differs");
}

TEST(Checkpoint, ReadsTheBundledModels) {
    const std::filesystem::path models = test::models_dir();
    EXPECT_EQ(Checkpoint::open(models / "aerie-tiny").tensors().size(), 57u);
    const Checkpoint eagle = Checkpoint::open(models / "aerie-tiny-eagle");
    const std::vector<int64_t> shape = {256, 512};
    EXPECT_EQ(eagle.get("fc.weight", shape).dtype, DType::F16);
    EXPECT_EQ(eagle.size_bytes(), 3'834'880u);
    const Checkpoint eagle3 = Checkpoint::open(models / "aerie-tiny-eagle3");
    EXPECT_EQ(eagle3.find("d2t")->dtype, DType::I64);
    EXPECT_EQ(eagle3.find("t2d")->dtype, DType::Bool);
}

}  // namespace
}  // namespace aerie
