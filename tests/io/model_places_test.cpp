// Models in the folders of other programs, found by name and listed.
#include "io/model_places.h"

#include <set>

#include "io/damage.h"
#include "io/environment.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::TestFolder;
using test::Variable;

constexpr const char* kHash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

// A home with the folders of all four programs.
class ModelPlaces : public testing::Test {
  protected:
    ModelPlaces() {
        cached("me", "one-GGUF", {"one-Q4_K_M.gguf", "README.md"});
        cached("me", "several-GGUF",
               {"several-Q4_K_M.gguf", "several-Q8_0.gguf", "mmproj-several-f16.gguf"});
        cached("me", "parts-GGUF",
               {"Q6_K/parts-Q6_K-00001-of-00002.gguf", "Q6_K/parts-Q6_K-00002-of-00002.gguf"});
        cached("me", "deep-GGUF", {"a/b/c/deep-Q4_K_M.gguf"});
        fs::create_directory_symlink("..", folder_.path() / (hub_ + "deep-GGUF/snapshots/abc/up"));
        cached("me", "folder", {"config.json", "model.safetensors", "tokenizer.json"});
        cached("me", "data", {"train.parquet"});
        folder_.write(".lmstudio/models/you/studio-GGUF/studio-Q4_0.gguf", "GGUF");
        folder_.write(".cache/llama.cpp/ggml-org_flat-GGUF_flat-Q8_0.gguf", "GGUF");
        folder_.write(".cache/llama.cpp/ggml-org_flat-GGUF_flat-Q8_0.gguf.json", "{}");
        manifest("llama3.2/latest", std::string("sha256:") + kHash);
        manifest("llama3.2/1b", std::string("sha256:") + kHash);
        folder_.write(std::string(".ollama/models/blobs/sha256-") + kHash, "GGUF");
    }

    void cached(const std::string& org, const std::string& name,
                const std::vector<std::string>& files) {
        const std::string repository = ".cache/huggingface/hub/models--" + org + "--" + name;
        folder_.write(repository + "/refs/main", "abc");
        for (const std::string& file : files)
            folder_.write(repository + "/snapshots/abc/" + file, "GGUF");
    }
    void manifest(const std::string& name, const std::string& digest) {
        folder_.write(".ollama/models/manifests/registry.ollama.ai/library/" + name,
                      R"({"layers": [{"mediaType": "application/vnd.ollama.image.template",
                                      "digest": "sha256:00"},
                                     {"mediaType": "application/vnd.ollama.image.model",
                                      "digest": ")" +
                          digest + "\"}]}");
    }
    // The model's path below the home.
    std::string found(const std::string& name) {
        const fs::path path = find_placed_model(name);
        return path.empty() ? "" : path.lexically_relative(folder_.path()).generic_string();
    }

    TestFolder folder_;
    const std::string hub_ = ".cache/huggingface/hub/models--me--";
    const Variable home_{"HOME", folder_.path().string()}, cache_{"XDG_CACHE_HOME", ""},
        hf_cache_{"HF_HUB_CACHE", ""}, hf_home_{"HF_HOME", ""}, llama_{"LLAMA_CACHE", ""},
        ollama_{"OLLAMA_MODELS", ""};
};

TEST_F(ModelPlaces, AreFoundByName) {
    EXPECT_EQ(found("me/one-GGUF"), hub_ + "one-GGUF/snapshots/abc/one-Q4_K_M.gguf");
    EXPECT_EQ(found("me/one-GGUF:q4_k_m"), hub_ + "one-GGUF/snapshots/abc/one-Q4_K_M.gguf");
    EXPECT_EQ(found("me/several-GGUF"), hub_ + "several-GGUF/snapshots/abc/several-Q4_K_M.gguf");
    EXPECT_EQ(found("me/several-GGUF:Q8_0"), hub_ + "several-GGUF/snapshots/abc/several-Q8_0.gguf");
    EXPECT_EQ(found("me/parts-GGUF"),
              hub_ + "parts-GGUF/snapshots/abc/Q6_K/parts-Q6_K-00001-of-00002.gguf");
    EXPECT_EQ(found("me/deep-GGUF"), hub_ + "deep-GGUF/snapshots/abc/a/b/c/deep-Q4_K_M.gguf");
    EXPECT_EQ(found("me/folder"), hub_ + "folder/snapshots/abc");
    EXPECT_EQ(found("you/studio-GGUF"), ".lmstudio/models/you/studio-GGUF/studio-Q4_0.gguf");
    EXPECT_EQ(found("you/studio-GGUF:Q4_0"), ".lmstudio/models/you/studio-GGUF/studio-Q4_0.gguf");
    EXPECT_EQ(found("ggml-org/flat-GGUF"), ".cache/llama.cpp/ggml-org_flat-GGUF_flat-Q8_0.gguf");
    for (const char* name : {"llama3.2", "llama3.2:1b", "llama3.2:latest"})
        EXPECT_EQ(found(name), std::string(".ollama/models/blobs/sha256-") + kHash) << name;
    for (const char* name : {"me/none", "llama3.2:3b", "none", "..", ":", "llama3.2:.."})
        EXPECT_EQ(found(name), "") << name;
}

TEST_F(ModelPlaces, SayWhichFilesThereAre) {
    const std::string error = error_of([] { find_placed_model("me/several-GGUF:Q2_K"); });
    EXPECT_NE(error.find("no file is Q2_K"), std::string::npos) << error;
    EXPECT_NE(error.find("several-Q8_0"), std::string::npos) << error;
    EXPECT_NE(error_of([] { find_placed_model("me/data"); }).find("no model that aerie reads"),
              std::string::npos);
}

TEST_F(ModelPlaces, AreListedByNamesThatFindThem) {
    std::set<std::string> names, programs;
    for (const PlacedModel& model : placed_models()) {
        names.insert(model.name);
        programs.insert(model.program);
        if (model.program != "llama.cpp") {
            EXPECT_EQ(find_placed_model(model.name), model.path);
        }
        EXPECT_TRUE(fs::exists(model.path)) << model.path;
    }
    const std::set<std::string> want{
        "me/one-GGUF",
        "me/several-GGUF:Q4_K_M",
        "me/several-GGUF:Q8_0",
        "me/parts-GGUF",
        "me/deep-GGUF",
        "me/folder",
        "you/studio-GGUF",
        (folder_.path() / ".cache/llama.cpp/ggml-org_flat-GGUF_flat-Q8_0.gguf").string(),
        "llama3.2",
        "llama3.2:1b"};
    EXPECT_EQ(names, want);
    EXPECT_EQ(programs.size(), 4u);
}

TEST_F(ModelPlaces, DamagedManifestsLeadNowhere) {
    for (const std::string digest :
         {"sha256:../../../secret", "sha256:", "md5:00", "sha256:none", "", "/etc/passwd"}) {
        manifest("bad/latest", digest);
        EXPECT_EQ(found("bad"), "") << digest;
    }
    for (const char* text : {"", "[]", "{\"layers\": 5}", "{\"layers\": [5, {}, {\"digest\": 1}]}",
                             "no JSON at all"}) {
        folder_.write(".ollama/models/manifests/registry.ollama.ai/library/bad/latest", text);
        EXPECT_EQ(found("bad"), "") << text;
    }
    EXPECT_EQ(placed_models().size(), 10u);
}

TEST(OnlyGguf, IsTheOneOfAFolder) {
    const TestFolder folder;
    EXPECT_EQ(only_gguf_in(folder.path()), "");
    folder.write("a-Q4_0.gguf", "GGUF");
    folder.write("mmproj-a.gguf", "GGUF");
    EXPECT_EQ(only_gguf_in(folder.path()).filename(), "a-Q4_0.gguf");
    folder.write("a-Q8_0.gguf", "GGUF");
    EXPECT_NE(error_of([&] { only_gguf_in(folder.path()); }).find("a-Q4_0.gguf, a-Q8_0.gguf"),
              std::string::npos);
}

TEST(RepositoryName, MayBeAnAddressOfTheHub) {
    for (const char* text : {"hf:org/name:Q4_0", "hf.co/org/name:Q4_0",
                             "https://huggingface.co/org/name:Q4_0", "huggingface.co/org/name:Q4_0",
                             "https://hf.co/org/name:Q4_0", "hf:hf.co/org/name:Q4_0"}) {
        const RepositoryName name = parse_repository_name(text);
        EXPECT_EQ(name.id(), "org/name") << text;
        EXPECT_EQ(name.quant, "Q4_0") << text;
        EXPECT_EQ(without_hub_prefix(text), "org/name:Q4_0") << text;
    }
    EXPECT_EQ(without_hub_prefix("org/name"), "");
}

TEST(RepositoryName, MayBeThePageOfAFile) {
    const RepositoryName file =
        parse_repository_name("https://huggingface.co/org/name/blob/main/a/m.GGUF?x=1");
    EXPECT_EQ(file.id(), "org/name");
    EXPECT_EQ(file.file, "a/m.GGUF");
    for (const char* text :
         {"hf.co/org/name/tree/main", "hf.co/org/name/tree/", "HTTP://www.HF.co/org/name/"}) {
        EXPECT_EQ(parse_repository_name(text).file, "") << text;
        EXPECT_EQ(parse_repository_name(text).id(), "org/name") << text;
    }
    EXPECT_EQ(parse_repository_name("hf.co/org/name/blob/main/tree/m%20a.gguf#x").file,
              "tree/m a.gguf");
    for (const char* page : {"hf.co/org/name?show_file_info=a%20b/m.gguf",
                             "hf.co/org/name/tree/main?show_file_info=a%20b/m.gguf&x=1#y"}) {
        EXPECT_EQ(parse_repository_name(page).file, "a b/m.gguf") << page;
        EXPECT_EQ(parse_repository_name(page).id(), "org/name") << page;
    }
    EXPECT_THROW(parse_repository_name("hf.co/org/name/blob/main/"), UsageError);
    for (const char* text :
         {"hf.co/org/name/resolve/v2/m.gguf", "hf.co/org/name/blob/main/m.gguf:F16",
          "hf.co/org/name/tree/v2", "hf.co/org/name/blob/main/config.json",
          "hf.co/org/name/tree/main/sub"})
        EXPECT_THROW(parse_repository_name(text), UsageError) << text;
}

}  // namespace
}  // namespace aerie
