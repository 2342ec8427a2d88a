// Model names to folders, and which files of a folder may be opened.
#include "io/model_folder.h"

#include "io/damage.h"
#include "io/environment.h"
#include "io/model_places.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TestFolder;
using test::Variable;

// A cache that has org/name at commit abc: refs, a snapshot with a link, a blob.
struct Cache {
    Cache() {
        folder.write("hub/models--org--name/refs/main", "abc");
        folder.write("hub/models--org--name/blobs/0123", "blob");
        fs::create_directories(snapshot);
        fs::create_symlink("../../blobs/0123", snapshot / "tokenizer.model");
        folder.write("hub/models--org--name/snapshots/abc/config.json", "{}");
        folder.write("hub/models--org--name/snapshots/abc/model.safetensors", "weights");
    }
    TestFolder folder;
    fs::path hub = folder.path() / "hub";
    fs::path snapshot = hub / "models--org--name" / "snapshots" / "abc";
};

TEST(ModelFolder, NamesAreLookedUpInTheCaches) {
    const Cache cache;
    {
        const Variable hub("HF_HUB_CACHE", cache.hub.string());
        EXPECT_EQ(find_placed_model("org/name"), cache.snapshot);
    }
    const Variable hub("HF_HUB_CACHE", "");
    {
        const Variable home("HF_HOME", cache.folder.path().string());
        EXPECT_EQ(find_placed_model("org/name"), cache.snapshot);
    }
    const Variable hf_home("HF_HOME", "");
    fs::create_directories(cache.folder.path() / ".cache" / "huggingface");
    fs::create_symlink(cache.hub, cache.folder.path() / ".cache" / "huggingface" / "hub");
    const Variable home("HOME", cache.folder.path().string());
    EXPECT_TRUE(fs::equivalent(find_placed_model("org/name"), cache.snapshot));
}

TEST(ModelFolder, TheReferenceMustNameACommit) {
    const Cache cache;
    const Variable hub("HF_HUB_CACHE", cache.hub.string());
    for (const char* commit : {"../../../..", "", "a/b", ".."}) {
        cache.folder.write("hub/models--org--name/refs/main", commit);
        EXPECT_NE(error_of([] { find_placed_model("org/name"); }), "") << commit;
    }
    cache.folder.write("hub/models--org--name/refs/main", "missing");
    EXPECT_EQ(find_placed_model("org/name"), "");
    cache.folder.write("hub/models--org--name/refs/main", "abc\n");
    EXPECT_EQ(find_placed_model("org/name"), cache.snapshot);
    cache.folder.write("hub/models--org--name/refs/main", std::string(1000, 'a'));
    EXPECT_NE(error_of([] { find_placed_model("org/name"); }), "");
}

TEST(ModelFolder, FilesLieInTheFolderOrTheCachesBlobs) {
    const Cache cache;
    EXPECT_EQ(file_in_folder(cache.snapshot, "tokenizer.model").filename(), "0123");
    cache.folder.write("plain/file", "x");
    EXPECT_EQ(file_in_folder(cache.folder.path() / "plain", "file").filename(), "file");
    // The same link, but not in a snapshot of the same model.
    const fs::path blob = cache.hub / "models--org--name" / "blobs" / "0123";
    fs::create_symlink(blob, cache.folder.path() / "plain" / "link");
    EXPECT_NE(error_of([&] { file_in_folder(cache.folder.path() / "plain", "link"); }), "");
    const fs::path other = cache.hub / "models--org--other" / "snapshots" / "abc";
    // On Windows this name would be a drive, or a second stream of a file.
    cache.folder.write("plain/c:file", "x");
    EXPECT_NE(error_of([&] { file_in_folder(cache.folder.path() / "plain", "c:file"); }), "");
    fs::create_directories(other);
    fs::create_symlink(blob, other / "link");
    EXPECT_NE(error_of([&] { file_in_folder(other, "link"); }), "");
    EXPECT_NE(error_of([&] { file_in_folder(other, "missing"); }), "");
}

// Python's json module writes NaN and infinities, which JSON does not have.
TEST(ModelFolder, NumbersThatAreNoneAreOnlyWrongWhereTheyAreRead) {
    const TestFolder folder;
    folder.write("a.json",
                 R"({"x": NaN, "y": [Infinity, -Infinity], "s": "NaN, \"-Infinity", "n": -1})");
    const std::optional<Json> json = read_json_in_folder(folder.path(), "a.json");
    ASSERT_TRUE(json);
    EXPECT_EQ(*json->find("s")->string(), "NaN, \"-Infinity");
    EXPECT_EQ(json->find("n")->number(), -1);
    EXPECT_FALSE(json->find("x")->is_number());
    EXPECT_EQ(json->find("y")->array()->size(), 2u);
    for (const Json& item : *json->find("y")->array()) EXPECT_FALSE(item.is_number());
    for (const char* bad :
         {"{\"x\": Nan}", "{\"x\": -Inf}", "{NaN", "{\"x\": NaNN}", "{\"x\": \"NaN"}) {
        folder.write("b.json", bad);
        EXPECT_NE(error_of([&] { read_json_in_folder(folder.path(), "b.json"); }), "") << bad;
    }
}

}  // namespace
}  // namespace aerie
