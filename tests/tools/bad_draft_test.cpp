// Heads that do not fit their target, and files that are no trees.
#include "io/input_file.h"
#include "io/write_files.h"
#include "paths.h"
#include "tools/bad_case.h"

namespace aerie::test {

namespace {

const std::string kModels = models_dir().string();

BadCase head(std::string name, std::vector<std::string> flags, std::vector<std::string> says,
             int exit_code = 1) {
    BadCase bad{std::move(name), std::move(says), {}, std::move(flags)};
    bad.exit_code = exit_code;
    return bad;
}

BadCase field(std::string name, const std::string& key, const std::string& json,
              std::vector<std::string> says) {
    says.push_back("target-eagle");
    return {std::move(name), std::move(says),
            [=](const ModelPair& models) { models.set(kHeadConfig, key, json); }};
}

BadCase renamed(std::string name, const std::string& from, const std::string& to,
                std::vector<std::string> says) {
    says.push_back("target-eagle");
    return {std::move(name), std::move(says), [=](const ModelPair& models) {
                std::string file = models.read(kHeadWeights);
                ASSERT_NE(file.find(from), std::string::npos);
                models.write(kHeadWeights, file.replace(file.find(from), from.size(), to));
            }};
}

BadCase tree(std::string name, std::string text, std::vector<std::string> says) {
    says.push_back("tree.json");
    BadCase bad{
        std::move(name),
        std::move(says),
        [text = std::move(text)](const ModelPair& models) { models.write("tree.json", text); },
        {"--draft", "eagle1", "--tree-file", "tree.json"}};
    return bad;
}

std::string many_paths() {
    std::string paths;
    for (int a = 0; a < 8; ++a) {
        paths += "[" + std::to_string(a) + "],";
        for (int b = 0; b < 7; ++b)
            paths += "[" + std::to_string(a) + "," + std::to_string(b) + "],";
    }
    return "[" + paths.substr(0, paths.size() - 1) + "]";
}

std::string deep_path() {
    std::string paths, path;
    for (int depth = 0; depth < 33; ++depth) {
        path += path.empty() ? "0" : ",0";
        paths += "[" + path + "],";
    }
    return "[" + paths.substr(0, paths.size() - 1) + "]";
}

const std::vector<BadCase> kHeads = {
    field("WrongHiddenSize", "hidden_size", "64", {"hidden size 64", "32"}),
    field("WrongVocabulary", "vocab_size", "5000", {"vocabulary size 5000", "4096"}),
    field("TwoLayers", "num_hidden_layers", "2", {"'num_hidden_layers' must be 1"}),
    field("Eagle3Fields", "draft_vocab_size", "2048", {"EAGLE-3", "'lm_head.weight'"}),
    field("QkvBias", "qkv_bias", "true", {"'layers.0.self_attn.q_proj.bias'"}),
    field("AttentionBias", "attention_bias", "true", {"'layers.0.self_attn.q_proj.bias'"}),
    field("WindowZero", "sliding_window", "0", {"'sliding_window'"}),
    field("Gelu", "hidden_act", R"("gelu")", {"'hidden_act'"}),
    field("OtherHeads", "num_key_value_heads", "2", {"k_proj", "[16, 32]", "[32, 32]"}),
    head("Eagle3", {"--head", kModels + "/aerie-tiny-eagle3"},
         {"aerie-tiny-eagle3", "hidden size 256"}),
    head("OfAnotherTarget", {"--head", kModels + "/aerie-tiny-eagle"}, {"hidden size 256", "32"}),
    head("VocabularyLargerThanTheModels", {"--draft-vocab", "5000"}, {"--draft-vocab 5000", "4096"},
         2),
    head("VocabularyOfOne", {"--draft-vocab", "1"}, {"--draft-vocab"}, 2),
    head("CountsForNothing", {"--token-counts", "target/config.json"}, {"--draft-vocab"}, 2),
    head("CountsThatAreNone", {"--draft-vocab", "100", "--token-counts", "target/config.json"},
         {"target/config.json, line 1"}),
    head("NoCounts", {"--draft-vocab", "100", "--token-counts", "absent"}, {"absent"}),
    head("VocabularyOfAnEagle3Head",
         {"--draft-vocab", "100", "--head", kModels + "/aerie-tiny-eagle3"}, {"EAGLE-1/2"}, 2),
    head("TapsOfAnEagleHead", {"--head-taps", "1,2,3"}, {"--head-taps", "EAGLE-3"}, 2),
    head("IsTarget", {"--head", "target", "--draft", "eagle2"},
         {"target: a language model", "--draft eagle2 needs an EAGLE-1/2 head"}),
    head("IsNoModel", {"--draft", "model", "--head", "target-eagle"},
         {"target-eagle: an EAGLE-1/2 head", "--draft model needs a language model"}),
    head("NoModelBeside", {"--draft", "model"}, {"--draft model", "-md MODEL"}, 2),
    BadCase{.name = "OtherTokens",
            .says = {"small: ", "target: token 0 is '!', the target's is '<unk>'"},
            .damage =
                [](const ModelPair& models) {
                    models.write("small/config.json", models.read(kConfig));
                    models.write("small/model.safetensors", models.read(kWeights));
                    models.write("small/tokenizer.json",
                                 read_text(test_data_dir() / "tokenizers/qwen2.json", 1 << 24));
                },
            .flags = {"-md", "small"}},
    BadCase{.name = "SmallModelDamaged",
            .says = {"small", "model.norm.weight"},
            .damage =
                [](const ModelPair& models) {
                    for (const char* file : {"config.json", "tokenizer.model"})
                        models.write(std::string("small/") + file,
                                     models.read(std::string("target/") + file));
                    std::string weights = models.read(kWeights);
                    const std::string from = "model.norm.weight", to = "model.nOrm.weight";
                    models.write("small/model.safetensors",
                                 weights.replace(weights.find(from), from.size(), to));
                },
            .flags = {"-md", "small"}},
    head("Missing", {"--head", "absent"}, {"'absent'"}),
    head("IsFile", {"--head", "target/config.json"}, {"'target/config.json'"}),
    BadCase{.name = "ChainLongerThanAMedusaHeadDrafts",
            .says = {"aerie-tiny-medusa", "a Medusa head drafts 4 tokens"},
            .flags = {"--head", kModels + "/aerie-tiny-medusa", "--draft", "chain",
                      "--chain-length", "5"},
            .command = {"generate", "-m", kModels + "/aerie-tiny", "-p", "x", "-n", "1", "-q"},
            .exit_code = 2},
    BadCase{.name = "NoneBeside",
            .says = {"--draft eagle1", "--head"},
            .damage = [](const ModelPair& models) { models.remove("target-eagle"); },
            .flags = {"--draft", "eagle1"},
            .exit_code = 2},
    BadCase{"ConfigMissing",
            {"target-eagle/config.json", "missing"},
            [](const ModelPair& models) { models.remove(kHeadConfig); }},
    BadCase{"WeightsMissing",
            {"target-eagle", "no model.safetensors"},
            [](const ModelPair& models) { models.remove(kHeadWeights); }},
    renamed("FcMissing", "\"fc.weight\"", "\"fc.wEight\"", {"fc.w"}),
    renamed("FcWrongShape", "[32,64]", "[64,32]", {"'fc.weight'", "[64, 32]"}),
    renamed("LayerMissing", "layers.0.mlp.up_proj", "layers.1.mlp.up_proj", {"up_proj"}),
};

const std::vector<BadCase> kTrees = {
    head("FileMissing", {"--draft", "eagle1", "--tree-file", "absent.json"}, {"absent.json"}),
    head("IsFolder", {"--tree-file", "target"}, {"target", "not a regular file"}),
    tree("NotJson", "0,0", {"not JSON"}),
    tree("EmptyFile", "", {"not JSON"}),
    tree("NoPaths", "[]", {"list of paths"}),
    tree("Object", "{}", {"list of paths"}),
    tree("EmptyPath", "[[]]", {"1 to 32"}),
    tree("Flat", "[0,1]", {"path"}),
    tree("Rank32", "[[32]]", {"0 to 31"}),
    tree("RankNegative", "[[-1]]", {"0 to 31"}),
    tree("RankFraction", "[[0.5]]", {"0 to 31"}),
    tree("RankString", R"([["0"]])", {"0 to 31"}),
    tree("ParentMissing", "[[0],[1,0]]", {"without its parent"}),
    tree("Twice", "[[0],[1],[0]]", {"twice"}),
    tree("SixtyFourPaths", many_paths(), {"63", "64"}),
    tree("TooDeep", deep_path(), {"32"}),
    tree("Nested", std::string(1000, '['), {"nested deeper"}),
    tree("Large", std::string(2 << 20, ' '), {"bytes"}),
};

}  // namespace

}  // namespace aerie::test

AERIE_BAD_INPUT(Head, kHeads)
AERIE_BAD_INPUT(TreeFile, kTrees)
