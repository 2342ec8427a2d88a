// The places where models and heads are found, and the defaults that count.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "io/damage.h"
#include "io/gguf_head.h"
#include "io/input_file.h"
#include "paths.h"
#include "tools/write_model.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFlags = {"-p", "The", "-n", "12"};
const std::string kModels = models_dir().string();

std::string bundled_ids() {
    static const std::string ids = field(generated(kFlags), "ids");
    return ids;
}

// The path of the model that `aerie info` finds with these flags and variables.
std::string found(const std::vector<std::string>& flags, const Surroundings& around) {
    const Outcome outcome = run(with({"info", "--json"}, flags), around);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out, "stdout");
    return *json.find("target")->find("path")->string();
}

TEST(FindModel, InTheHuggingFaceCache) {
    const TestFolder cache;
    for (const std::string name : {"aerie-tiny", "aerie-tiny-eagle"}) {
        const fs::path repository = cache.path() / ("models--org--" + name);
        const fs::path snapshot = repository / "snapshots" / "0123abcd";
        fs::create_directories(snapshot);
        fs::create_directories(repository / "blobs");
        fs::create_directories(repository / "refs");
        write_file(repository / "refs" / "main", "0123abcd");
        for (const auto& entry : fs::directory_iterator(fs::path(kModels) / name)) {
            const std::string file = entry.path().filename(), blob = "hash-of-" + file;
            fs::copy(entry.path(), repository / "blobs" / blob);
            fs::create_symlink("../../blobs/" + blob, snapshot / file);
        }
    }
    const Surroundings around{.variables = {{"HF_HUB_CACHE", cache.path().string()}}};
    const auto flags = with({"-m", "org/aerie-tiny", "--head", "org/aerie-tiny-eagle"}, kFlags);
    EXPECT_EQ(field(generated(flags, around), "ids"), bundled_ids());
}

TEST(FindModel, SuggestsTheNameThatWasMeant) {
    const Outcome outcome = run({"info", "-m", "smolm2"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find("; did you mean smollm2?"), std::string::npos) << outcome.err;
    const Outcome other = run({"info", "-m", "a-wholly-other-name"});
    EXPECT_EQ(other.err.find("did you mean"), std::string::npos) << other.err;
}

// A file without its ending, in a folder by itself, in LM Studio's folder, in Ollama's.
TEST(FindModel, WhereOtherProgramsKeepIt) {
    const TestFolder home;
    const Surroundings around{.folder = home.path(),
                              .variables = {{"HOME", home.path().string()},
                                            {"XDG_CACHE_HOME", ""},
                                            {"OLLAMA_MODELS", ""},
                                            {"LLAMA_CACHE", ""}}};
    const fs::path file = test_data_dir() / "real" / "gguf" / "llama3-Q4_K_M.gguf";
    const fs::path studio = home.path() / ".lmstudio/models/org/small-GGUF";
    fs::create_directories(studio);
    fs::copy(file, studio / "small-Q4_K_M.gguf");
    const std::string hash(64, 'a');
    fs::create_directories(home.path() / ".ollama/models/blobs");
    const fs::path blob = home.path() / ".ollama/models/blobs" / ("sha256-" + hash);
    fs::copy(file, blob);
    home.write(
        ".ollama/models/manifests/registry.ollama.ai/library/small/1b",
        R"({"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "sha256:)" +
            hash + "\"}]}");
    for (const std::string name : {"org/small-GGUF", "org/small-GGUF:Q4_K_M", "small:1b"}) {
        const std::string path = found({"-m", name}, around);
        EXPECT_EQ(fs::file_size(path), fs::file_size(file)) << name;
    }
    EXPECT_EQ(found({"-m", blob.string()}, around), blob.string());
    EXPECT_EQ(found({"-m", studio.string()}, around), (studio / "small-Q4_K_M.gguf").string());

    const Outcome list = run({"models", "--json"}, around);
    const Json json = Json::parse(list.out, "stdout");
    std::map<std::string, std::string> programs;
    for (const Json& model : *json.find("models")->array())
        programs[*model.find("name")->string()] = *model.find("program")->string();
    EXPECT_EQ(programs["org/small-GGUF"], "LM Studio");
    EXPECT_EQ(programs["small:1b"], "Ollama");
    EXPECT_EQ(programs["smollm2"], "aerie");
    EXPECT_EQ(programs["aerie-tiny"], "aerie");
    EXPECT_EQ(programs.count("aerie-tiny-eagle"), 0u);
    const std::string table = run({"models"}, around).out;
    for (const char* text : {"org/small-GGUF", "small:1b", "LM Studio", "aerie-tiny-eagle"})
        EXPECT_NE(table.find(text), std::string::npos) << table;
}

TEST(FindModel, SaysWhatAFileIsInstead) {
    const TestFolder folder;
    folder.write("page", "<!DOCTYPE html><html>");
    folder.write("archive", std::string("PK\x03\x04") + "torch");
    folder.write("weights.safetensors", std::string("\x40\0\0\0\0\0\0\0", 8) + "{\"a\":{}}");
    folder.write("empty", "");
    folder.write("text", "Once upon a time");
    for (const auto& [name, what] : std::map<std::string, std::string>{
             {"page", "a web page"},
             {"archive", "an archive"},
             {"weights.safetensors", "given by its folder"},
             {"empty", "an empty file"},
             {"text", "neither a folder nor a GGUF file"},
             {"absent", "'aerie models' lists them"},
             {"absent/too", "aerie pull absent/too"},
             {"./absent", "no such file or folder"},
             {std::string(300, 'a'), "File name too long"},
             {std::string(300, 'a') + ".gguf", "File name too long"}}) {
        const Outcome outcome = run({"info", "-m", name}, {.folder = folder.path()});
        EXPECT_EQ(outcome.exit_code, 1) << name;
        EXPECT_NE(outcome.err.find(what), std::string::npos) << outcome.err;
    }
}

TEST(FindModel, RefusesWhatNamesNothingInOneLine) {
    const TestFolder folder;
    for (const char* name :
         {"", "nowhere", "../x", "a/b/c", "/abs/path", "./x", "a/..", "a\nb/c"}) {
        const Outcome outcome = run({"info", "-m", name}, {.folder = folder.path()});
        EXPECT_NE(outcome.exit_code, 0) << name;
        EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    }
}

// Its folder has a head's name from the first moment on.
TEST(FindModel, AHeadThatIsStillTrainedIsNone) {
    const TestFolder folder;
    const std::string model = (folder.path() / "m").string();
    fs::copy(fs::path(kModels) / "aerie-tiny", model);
    fs::create_directories(folder.path() / "m-eagle3" / "training");
    EXPECT_EQ(field(generated(with({"-m", model}, kFlags)), "ids"), bundled_ids());
    fs::remove(folder.path() / "m-eagle3" / "training");
    EXPECT_EQ(run(with({"generate", "-m", model}, kFlags)).exit_code, 1) << "an empty folder";
}

TEST(FindModel, ByFlagThenVariableThenDefault) {
    const TestFolder folder;
    const std::string other = copy_without_weights("aerie-tiny", folder.path() / "other");
    fs::copy(fs::path(kModels) / "aerie-tiny/model.safetensors", other);
    const Surroundings around{.folder = folder.path(), .variables = {{"AERIE_MODEL", other}}};
    EXPECT_EQ(found({}, around), other);
    // Bundled models are found beside the program, where a link in the build folder leads to them.
    const fs::path bundled = kModels + "/aerie-tiny";
    EXPECT_TRUE(fs::equivalent(found({"-m", "aerie-tiny"}, around), bundled));
    EXPECT_EQ(found({"other"}, around), "other");
    EXPECT_TRUE(
        fs::equivalent(found({}, {.folder = folder.path(), .variables = {{"AERIE_MODEL", ""}}}),
                       kModels + "/smollm2.gguf"));
    EXPECT_EQ(found({"other"}, {.variables = {{"AERIE_MODELS", folder.path().string()}}}), other);
}

// The current folder may hold anything that was unpacked there, so a bundled name never means it; a
// path does.
TEST(FindModel, BundledNamesAreNotThoseOfTheCurrentFolder) {
    const TestFolder folder;
    const auto put = [&](const std::string& name) {
        const fs::path made = copy_without_weights("aerie-tiny", folder.path() / name);
        fs::copy(fs::path(kModels) / "aerie-tiny/model.safetensors", made);
    };
    fs::create_directory(folder.path() / "models");
    put("aerie-tiny");
    put("models/aerie-tiny");
    put("models/other");
    const Surroundings here{.folder = folder.path()};
    const fs::path bundled = kModels + "/aerie-tiny";
    EXPECT_TRUE(fs::equivalent(found({}, here), bundled));
    EXPECT_TRUE(fs::equivalent(found({"-m", "aerie-tiny"}, here), bundled));
    for (const std::string mine : {"./aerie-tiny", "models/aerie-tiny", "aerie-tiny/"})
        EXPECT_EQ(found({"-m", mine}, here), mine);
    EXPECT_EQ(found({"-m", "other"}, here), "models/other") << "which no other folder has";
    // A folder of models that the user names comes first.
    EXPECT_EQ(found({"-m", "aerie-tiny"},
                    {.folder = folder.path(),
                     .variables = {{"AERIE_MODELS", (folder.path() / "models").string()}}}),
              (folder.path() / "models/aerie-tiny").string());
}

TEST(FindModel, HeadsAreOptional) {
    const TestFolder folder;
    const std::string lonely = copy_without_weights("aerie-tiny", folder.path() / "lonely");
    fs::copy(fs::path(kModels) / "aerie-tiny/model.safetensors", lonely);
    const Json plain = generated(with({"-m", lonely}, kFlags));
    EXPECT_EQ(field(plain, "ids"), bundled_ids());
    EXPECT_EQ(field(*plain.find("stats"), "cycles"), "11");
    for (const char* flag : {"--head", "-md", "--model-draft"}) {
        const auto flags =
            with({"-m", lonely, flag, "aerie-tiny-eagle", "--tree", "8,3,4"}, kFlags);
        EXPECT_LT(generated(flags).find("stats")->find("cycles")->number(), 11);
    }
    const Surroundings around{.variables = {{"AERIE_HEAD", kModels + "/aerie-tiny-eagle"}}};
    const Json drafted = generated(with({"-m", lonely, "--tree", "8,3,4"}, kFlags), around);
    EXPECT_LT(drafted.find("stats")->find("cycles")->number(), 11);
}

TEST(FindModel, HeadsInGgufFilesBesideTheModel) {
    const TestFolder folder;
    const std::string lonely = copy_without_weights("aerie-tiny", folder.path() / "lonely");
    fs::copy(fs::path(kModels) / "aerie-tiny/model.safetensors", lonely);
    const fs::path head = fs::path(kModels) / "aerie-tiny-eagle3";
    const Json config = Json::parse(read_text(head / "config.json", 1 << 16), "config.json");
    folder.write("lonely-eagle3.gguf", gguf_head(config, Stored::all_of(head), DType::F16).file());
    for (const std::vector<std::string>& draft :
         {std::vector<std::string>{}, {"--draft", "eagle3"}}) {
        const Json drafted =
            generated(with(with({"-m", lonely, "--tree", "8,3,4"}, kFlags), draft));
        EXPECT_EQ(field(drafted, "ids"), bundled_ids());
        EXPECT_LT(drafted.find("stats")->find("cycles")->number(), 11);
    }
    // A head is no model by itself.
    const Outcome outcome = run({"info", "-m", lonely + "-eagle3.gguf"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find("lonely-eagle3.gguf: an EAGLE-3 head, not a model"),
              std::string::npos)
        << outcome.err;
}

// The target is its own draft model, so everything that a chain drafts is accepted.
TEST(FindModel, DraftModels) {
    const TestFolder folder;
    const auto copy = [&](const char* name) {
        const fs::path made = copy_without_weights("aerie-tiny", folder.path() / name);
        fs::copy(fs::path(kModels) / "aerie-tiny/model.safetensors", made);
        return made.string();
    };
    const std::string target = copy("lonely");
    const Surroundings here{.folder = folder.path()};
    const auto cycles = [&](const std::vector<std::string>& flags, const Surroundings& around) {
        const Json json = generated(
            with(with({"-m", target, "--tree", "4,3,1", "--draft-weights", "f16"}, flags), kFlags),
            around);
        EXPECT_EQ(field(json, "ids"), bundled_ids());
        return field(*json.find("stats"), "cycles");
    };
    for (const char* flag : {"--head", "-md", "--model-draft"})
        EXPECT_EQ(cycles({flag, "aerie-tiny"}, here), "3") << flag;
    EXPECT_EQ(cycles({"-md", "aerie-tiny", "--draft", "chain", "--chain-length", "3"}, here), "3");
    EXPECT_EQ(cycles({}, {.folder = folder.path(), .variables = {{"AERIE_HEAD", "aerie-tiny"}}}),
              "3");
    EXPECT_EQ(cycles({}, here), "11") << "none is beside it yet";
    EXPECT_EQ(run({"convert", "-m", "aerie-tiny", "-o", "lonely-draft.gguf", "-q"}, here).exit_code,
              0);
    EXPECT_EQ(cycles({}, here), "3");
    fs::remove(folder.path() / "lonely-draft.gguf");
    copy("lonely-draft");
    EXPECT_EQ(cycles({}, here), "3");
    EXPECT_EQ(cycles({"--draft", "model"}, here), "3");

    const std::vector<std::string> info = {"info", target, "-c", "512"};
    const Json json = Json::parse(run(with(info, {"--json"}), here).out, "stdout");
    EXPECT_EQ(field(*json.find("draft_model"), "layers"), "6");
    EXPECT_GT(json.find("memory_bytes")->find("draft_model_weights")->number(), 1e6);
    EXPECT_NE(field(*json.find("matrix_bytes"), "draft_model").find("q8_0"), std::string::npos);
    const std::string text = run(info, here).out;
    EXPECT_NE(text.find("draft model " + target + "-draft\n"), std::string::npos) << text;
    EXPECT_NE(text.find("draft model weights, q8_0"), std::string::npos) << text;
}

TEST(GenerationConfig, EachValueCountsUnlessAFlagGivesIt) {
    const TestFolder folder;
    const std::string model = copy_without_weights("aerie-tiny", folder.path() / "model");
    fs::copy(fs::path(kModels) / "aerie-tiny/model.safetensors", model);
    const auto ids = [&](const std::vector<std::string>& more, bool do_sample) {
        write_file(
            fs::path(model) / "generation_config.json",
            std::string("{\"eos_token_id\":2,\"temperature\":1.5,\"top_k\":7,\"do_sample\":") +
                (do_sample ? "true}" : "false}"));
        return field(generated(with(with({"-m", model, "-s", "9"}, kFlags), more)), "ids");
    };
    EXPECT_EQ(ids({}, false), bundled_ids());
    EXPECT_EQ(ids({}, true), ids({"--temp", "1.5", "--top-k", "7"}, false));
    EXPECT_NE(ids({}, true), bundled_ids());
    EXPECT_EQ(ids({"--temp", "0"}, true), bundled_ids());
    EXPECT_EQ(ids({"--top-k", "3"}, true), ids({"--temp", "1.5", "--top-k", "3"}, false));
    EXPECT_EQ(ids({"--top-k", "3"}, false), bundled_ids()) << "the model asks for greedy decoding";
}

TEST(Info, TellsShapeAndMemory) {
    const Json json = Json::parse(run({"info", "aerie-tiny", "--json", "-c", "512"}).out, "stdout");
    EXPECT_EQ(field(json, "schema"), "\"aerie-info-1\"");
    EXPECT_EQ(field(json, "context"), "512");
    EXPECT_EQ(field(*json.find("target"), "layers"), "6");
    EXPECT_EQ(field(*json.find("head"), "layers"), "1");
    double sum = 0;
    for (const auto& [name, bytes] : *json.find("memory_bytes")->object())
        sum += name == "total" ? 0 : bytes.number();
    EXPECT_EQ(sum, json.find("memory_bytes")->find("total")->number());
    const Json& serve = *json.find("serve");
    EXPECT_EQ(field(serve, "contexts"), "8");
    EXPECT_EQ(field(serve, "context"), "512");
    const double cache = json.find("memory_bytes")->find("kv_cache")->number();
    EXPECT_GE(serve.find("memory_bytes")->number(), sum + 7 * cache);
    EXPECT_NE(run({"info"}).out.find("target weights"), std::string::npos);
}

}  // namespace
}  // namespace aerie::test
