// Faults in config.json, generation_config.json and the tokenizer's files.
#include <sys/stat.h>

#include "io/input_file.h"
#include "text/write_model.h"
#include "tools/bad_case.h"

namespace aerie::test {

namespace {

constexpr const char* kTokenizer = "target/tokenizer.model";
constexpr const char* kTokenizerConfig = "target/tokenizer_config.json";
constexpr const char* kGeneration = "target/generation_config.json";

BadCase text(std::string name, const char* file, std::string text, std::vector<std::string> says) {
    says.push_back(file);
    return {std::move(name), std::move(says),
            [=](const ModelPair& models) { models.write(file, text); }};
}

BadCase without(std::string name, const char* file, std::vector<std::string> says) {
    says.push_back(file);
    return {std::move(name), std::move(says),
            [=](const ModelPair& models) { models.remove(file); }};
}

BadCase field(std::string name, const char* file, const std::string& key, const std::string& json,
              std::vector<std::string> says) {
    says.push_back(file);
    return {std::move(name), std::move(says),
            [=](const ModelPair& models) { models.set(file, key, json); }};
}

void break_template(const ModelPair& models) {
    models.set(kTokenizerConfig, "chat_template", R"("{% for m in messages %}{{ m }}")");
}

// A link to a file that is missing, or to itself.
BadCase link(std::string name, const char* file, const char* to, const char* problem) {
    return {std::move(name), {file, problem}, [=](const ModelPair& models) {
                models.remove(file);
                std::filesystem::create_symlink(to, models.folder() / file);
            }};
}

// Limits the program's memory, beyond 16 MB for its own data.
BadCase within_mb(BadCase bad, size_t megabytes) {
    bad.most_bytes = (megabytes + 16) << 20;
    return bad;
}

std::string many_keys(int count) {
    std::string keys = "{";
    for (int i = 0; i < count; ++i) keys += "\"" + std::to_string(i) + "\":0,";
    return keys + "\"last\":0}";
}

std::string many_pieces(int count) {
    ModelWriter model;
    for (int i = 0; i < count; ++i) model.pieces.push_back({"piece " + std::to_string(i), 0});
    return model.file();
}

// A field of the target's config.json that the error must name.
BadCase config(std::string name, const std::string& key, const std::string& json) {
    return field(std::move(name), kConfig, key, json, {"'" + key + "'"});
}

// The file is a pipe without a writer: opening it must not hang.
BadCase pipe(std::string name, const char* file) {
    return {std::move(name), {file, "not a regular file"}, [=](const ModelPair& models) {
                models.remove(file);
                ASSERT_EQ(::mkfifo((models.folder() / file).c_str(), 0600), 0);
            }};
}

const std::vector<BadCase> kConfigFiles = {
    without("Missing", kConfig, {"missing"}),
    text("Empty", kConfig, "", {"not JSON"}),
    text("NotJson", kConfig, "hidden_size = 32", {"not JSON"}),
    text("Array", kConfig, "[]", {"JSON object"}),
    text("Number", kConfig, "7", {"JSON object"}),
    text("Trailing", kConfig, "{} {}", {"not JSON"}),
    text("NotUtf8", kConfig, "{\"a\":\"\xFF\"}", {"not JSON"}),
    text("Nested", kConfig, std::string(200'000, '['), {"nested deeper"}),
    text("DuplicateKey", kConfig, R"({"vocab_size":4096,"vocab_size":8})", {"duplicate key"}),
    text("Huge", kConfig, std::string(5 << 20, ' '), {"bytes"}),
    within_mb(text("ManyKeys", kConfig, many_keys(350'000), {"100000 values"}), 64),
    within_mb(
        text("LongString", kConfig, "[\"" + std::string(4'000'000, 'x') + "\"]", {"JSON object"}),
        64),
    text("NulAndMore", kConfig, std::string("{}\0{}", 5), {"not JSON"}),
    link("LinkToNothing", kConfig, "absent", "No such file"),
    link("LinkToItself", kConfig, "config.json", "symbolic links"),
    link("GenerationConfigLinksToNothing", kGeneration, "absent", "No such file"),
    link("GenerationConfigLinksToItself", kGeneration, "generation_config.json", "symbolic links"),
    link("TokenizerConfigLinksToNothing", kTokenizerConfig, "absent", "No such file"),
    link("TokenizerConfigLinksToItself", kTokenizerConfig, "tokenizer_config.json",
         "symbolic links"),
    text("ManyValues", kConfig, "[" + std::string(3 << 20, '0').replace(0, 1, "0,0"), {"not JSON"}),
    pipe("Pipe", kConfig),
    BadCase{"Folder",
            {kConfig, "not a regular file"},
            [](const ModelPair& models) {
                models.remove(kConfig);
                std::filesystem::create_directory(models.folder() / kConfig);
            }},
    BadCase{"LinkOutside",
            {kConfig, "outside the model folder"},
            [](const ModelPair& models) {
                models.remove(kConfig);
                std::filesystem::create_symlink("/etc/passwd", models.folder() / kConfig);
            }},
};

const std::vector<BadCase> kConfigFields = {
    config("HiddenMissing", "hidden_size", ""),
    field("HiddenNan", kConfig, "hidden_size", "NaN", {"'hidden_size' must be"}),
    field("EpsilonInfinite", kConfig, "rms_norm_eps", "1e999", {}),
    config("HiddenString", "hidden_size", R"("32")"),
    config("HiddenNegative", "hidden_size", "-32"),
    config("HiddenFraction", "hidden_size", "32.5"),
    config("HiddenHuge", "hidden_size", "1000000000"),
    config("HiddenBeyondInt64", "hidden_size", "1e300"),
    config("HiddenObject", "hidden_size", "{}"),
    config("FfnZero", "intermediate_size", "0"),
    config("VocabularyHuge", "vocab_size", "4294967296"),
    config("VocabularyMissing", "vocab_size", ""),
    config("HeadsZero", "num_attention_heads", "0"),
    BadCase{"HeadsDoNotDivide",
            {kConfig, "'num_attention_heads'"},
            [](const ModelPair& models) {
                models.set(kConfig, "head_dim", "");
                models.set(kConfig, "num_attention_heads", "3");
            }},
    config("KvHeadsZero", "num_key_value_heads", "0"),
    config("KvHeadsMore", "num_key_value_heads", "4"),
    field("HeadSizeOdd", kConfig, "head_dim", "25", {"must be even", "25"}),
    BadCase{"HeadSize24",
            {kWeights, "heads of 24 elements", "multiple of 16"},
            [](const ModelPair& models) { models.set(kConfig, "head_dim", "24"); }},
    config("HeadSizeHuge", "head_dim", "65536"),
    config("LayersMany", "num_hidden_layers", "100000"),
    config("LayersNone", "num_hidden_layers", "0"),
    config("ContextHuge", "max_position_embeddings", "1e12"),
    config("ContextOne", "max_position_embeddings", "1"),
    config("EpsilonNegative", "rms_norm_eps", "-1"),
    config("EpsilonString", "rms_norm_eps", R"("1e-5")"),
    config("ThetaZero", "rope_theta", "0"),
    config("TypeOther", "model_type", R"("gemma")"),
    config("TypeAbsent", "model_type", ""),
    config("TypeNumber", "model_type", "1"),
    config("TypeWithEscapes", "model_type", R"("\u001b[2J\nllama")"),
    config("ActivationOther", "hidden_act", R"("gelu")"),
    config("RopeScaled", "rope_scaling", R"({"type":"longrope","factor":2.0})"),
    config("RopeOfNewKind", "rope_parameters",
           R"({"rope_type":"llama3","rope_theta":500000.0,"factor":8.0})"),
    BadCase{.name = "RopeDynamicBeyondItsLength",
            .says = {"context of 2049", "2048"},
            .damage =
                [](const ModelPair& models) {
                    models.set(kConfig, "rope_scaling", R"({"type":"dynamic","factor":4.0})");
                },
            .flags = {"-c", "2049"},
            .exit_code = 2},
    BadCase{"RopeThetaTwice",
            {kConfig, "'rope_parameters'", "'rope_theta'"},
            [](const ModelPair& models) {
                models.set(kConfig, "rope_theta", "10000");
                models.set(kConfig, "rope_parameters", R"({"rope_theta":500000.0})");
            }},
    config("RopeParametersNumber", "rope_parameters", "1"),
    BadCase{"AttentionBias",
            {"target", "'model.layers.0.self_attn.q_proj.bias'"},
            [](const ModelPair& models) { models.set(kConfig, "attention_bias", "true"); }},
    BadCase{"MlpBias",
            {"target", "'model.layers.0.mlp.gate_proj.bias'"},
            [](const ModelPair& models) { models.set(kConfig, "mlp_bias", "true"); }},
    config("MlpBiasNumber", "mlp_bias", "1"),
    config("LayerTypesString", "layer_types", R"("full_attention")"),
    config("LayerTypesTooFew", "layer_types", "[]"),
    config("LayerTypesOther", "layer_types", R"(["linear_attention"])"),
    config("LayerTypesWithoutWindow", "layer_types", R"(["sliding_attention"])"),
    config("TiedNumber", "tie_word_embeddings", "1"),
    config("EosOutside", "eos_token_id", "4096"),
    config("EosNegative", "eos_token_id", "[-1]"),
    config("EosString", "eos_token_id", R"("</s>")"),
};

const std::vector<BadCase> kGenerationFields = {
    text("NotJson", kGeneration, "do_sample: true", {"not JSON"}),
    text("Array", kGeneration, "[]", {"JSON object"}),
    pipe("Pipe", kGeneration),
    text("TemperatureString", kGeneration, R"({"do_sample":true,"temperature":"1"})",
         {"'temperature'"}),
    text("TopPOver1", kGeneration, R"({"do_sample":true,"top_p":1.5})", {"'top_p'"}),
    text("TopKNegative", kGeneration, R"({"do_sample":true,"top_k":-1})", {"'top_k'"}),
    text("SampleString", kGeneration, R"({"do_sample":"yes"})", {"'do_sample'"}),
    text("EosHuge", kGeneration, R"({"eos_token_id":1e9})", {"'eos_token_id'"}),
};

const std::vector<BadCase> kTokenizerFiles = {
    BadCase{"Missing",
            {"target", "no tokenizer.json and no tokenizer.model"},
            [](const ModelPair& models) { models.remove(kTokenizer); }},
    text("Empty", kTokenizer, "", {}),
    text("Garbage", kTokenizer, std::string(5000, '\x7F'), {}),
    text("Json", kTokenizer, R"({"model":{}})", {}),
    BadCase{"Truncated",
            {kTokenizer},
            [](const ModelPair& models) { models.truncate(kTokenizer, 30'000); }},
    BadCase{"CutByOneByte",
            {kTokenizer},
            [](const ModelPair& models) {
                models.truncate(kTokenizer, models.read(kTokenizer).size() - 1);
            }},
    pipe("Pipe", kTokenizer),
    within_mb(
        BadCase{"VeryManyPieces",
                {"490259 pieces", "4096"},
                [](const ModelPair& models) { models.write(kTokenizer, many_pieces(490'000)); }},
        256),
    text("TooManyPieces", kTokenizer, many_pieces(500'000), {"more than 500000 pieces"}),
    BadCase{.name = "MorePiecesThanVocabulary",
            .says = {"4096 pieces", "4000"},
            .damage = [](const ModelPair& models) { models.set(kConfig, "vocab_size", "4000"); },
            .flags = {"--draft", "none"}},
    text("ConfigNotJson", kTokenizerConfig, "{", {"not JSON"}),
    text("ConfigArray", kTokenizerConfig, "[]", {"no JSON object"}),
    text("BosUnknown", kTokenizerConfig, R"({"bos_token":"<|begin|>"})", {"'<|begin|>'"}),
    text("BosNumber", kTokenizerConfig, R"({"bos_token":1})", {"bos_token"}),
    text("AddBosString", kTokenizerConfig, R"({"add_bos_token":"true"})", {"add_bos_token"}),
    BadCase{.name = "ChatTemplateBroken",
            .says = {"tokenizer_config.json", "template"},
            .damage = break_template,
            .flags = {"--chat"}},
    BadCase{.name = "ChatTemplateBrokenInServer",
            .says = {"tokenizer_config.json: chat_template:1: no tag 'endfor' before the end"},
            .damage = break_template,
            .command = {"serve", "-m", "target", "--port", "0", "-q"}},
    BadCase{.name = "ChatTemplateBrokenInChat",
            .says = {"tokenizer_config.json: chat_template:1: no tag 'endfor' before the end"},
            .damage = break_template,
            .command = {"chat", "-m", "target"}},
    BadCase{.name = "ChatTemplateOfUnknownFilter",
            .says = {"tokenizer_config.json: chat_template:2: unknown filter 'nosuch'"},
            .damage =
                [](const ModelPair& models) {
                    models.set(kTokenizerConfig, "chat_template",
                               R"("\n{% for m in [] %}{{ m|nosuch }}{% endfor %}")");
                },
            .command = {"serve", "-m", "target", "--port", "0", "-q"}},
    BadCase{.name = "ChatTemplateMissing",
            .says = {"no chat template", "--template"},
            .damage =
                [](const ModelPair& models) { models.set(kTokenizerConfig, "chat_template", ""); },
            .flags = {"--chat"}},
    BadCase{
        .name = "NoBosAndNoPrompt",
        .says = {"prompt is empty"},
        .damage =
            [](const ModelPair& models) { models.set(kTokenizerConfig, "add_bos_token", "false"); },
        .command = {"generate", "-m", "target"},
        .exit_code = 2},
};

}  // namespace

TEST(ConfigFile, MayBeginWithAByteOrderMark) {
    const ModelPair models;
    for (const char* file : {kConfig, kGeneration, kTokenizerConfig})
        models.write(file, "\xEF\xBB\xBF" + models.read(file));
    const Outcome outcome =
        run({"generate", "-m", "target", "-p", "x", "-n", "1", "-q"}, {.folder = models.folder()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
}

// A raw prompt needs no template.
TEST(ChatTemplate, BrokenOneDoesNotStopRawText) {
    const ModelPair models;
    break_template(models);
    const Outcome outcome =
        run({"generate", "-m", "target", "-p", "x", "-n", "1", "-q"}, {.folder = models.folder()});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
}

}  // namespace aerie::test

AERIE_BAD_INPUT(ConfigFile, kConfigFiles)
AERIE_BAD_INPUT(ConfigField, kConfigFields)
AERIE_BAD_INPUT(GenerationConfig, kGenerationFields)
AERIE_BAD_INPUT(TokenizerFile, kTokenizerFiles)
