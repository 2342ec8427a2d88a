// Drafters that aerie does not run are refused by name, whatever program wrote their files; files
// of EAGLE-3 are recognised in every spelling.
#include "io/foreign_drafters.h"

#include <gtest/gtest.h>

#include "draft/head_of_config.h"
#include "draft/heads/eagle3_shape.h"
#include "io/damage.h"
#include "io/write_gguf.h"
#include "paths.h"

namespace aerie::test {
namespace {

std::string config_of(const std::string& name) {
    return read_text(test_data_dir() / "drafters" / "configs" / (name + ".json"), 1 << 16);
}

bool has(const std::string& text, const std::string& part) {
    return text.find(part) != text.npos;
}

class ForeignDrafters : public testing::Test {
  protected:
    // The error for a folder with this configuration and a file of these tensors.
    std::string refusal(const std::string& config, const std::vector<std::string>& tensors = {}) {
        std::string header;
        for (const std::string& name : tensors)
            header += (header.empty() ? "{\"" : ",\"") + name +
                      R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
        header = header.empty() ? "{}" : header + "}";
        folder_.write("head/config.json", config);
        folder_.write("head/model.safetensors", little_endian(header.size(), 8) + header);
        return refusal_of(folder_.path() / "head");
    }
    // Opening the head and looking for its kind must give the same error.
    static std::string refusal_of(const std::filesystem::path& path) {
        const std::string error = error_of([&] { open_head(path); });
        EXPECT_EQ(error_of([&] { head_kind(path); }), error);
        return error;
    }

    const TestFolder folder_;
};

TEST_F(ForeignDrafters, AreNamedByTheirConfigurations) {
    for (const auto& [name, kind] : std::vector<std::pair<std::string, std::string>>{
             {"dflash", "a DFlash drafter,"},
             {"dflash-window", "a DFlash drafter,"},
             {"dflash-window-causal", "a DFlash drafter,"},
             {"dflash-speculators", "a DFlash drafter,"},
             {"zlab-dflash-two-bases", "a DFlash drafter,"},
             {"deepspec-dflash", "a DFlash drafter that samples from its anchor,"},
             {"dflash2", "a DFlash2 drafter,"},
             {"dspark", "a DSpark drafter,"},
             {"dspark-zlab", "a DSpark drafter,"},
             {"dspark-speculators", "a DSpark drafter,"},
             {"deepspec-dspark-gated", "a DSpark drafter with a gated Markov head,"},
             {"deepspec-dspark-rnn", "a DSpark drafter with a recurrent Markov head,"},
             {"zlab-domino", "a Domino drafter,"},
             {"peagle-speculators", "a P-EAGLE drafter,"},
             {"peagle-pard", "a P-EAGLE drafter,"},
             {"eagle4", "an EAGLE-4 drafter,"},
             {"mtp-speculators", "an MTP drafter,"}}) {
        const std::string error = refusal(config_of(name));
        EXPECT_TRUE(has(error, "head: " + kind + " which aerie does not run")) << name << error;
        // The configuration alone suffices, without weights.
        folder_.write("bare/config.json", config_of(name));
        EXPECT_TRUE(has(refusal_of(folder_.path() / "bare"), ": " + kind)) << name;
        const Json config = Json::parse(config_of(name), name);
        EXPECT_FALSE(is_eagle3(Fields(config, name))) << name;
    }
}

// Keys and classes by which other engines recognise their drafters.
TEST_F(ForeignDrafters, AreNamedInSpellingsOfOtherEngines) {
    for (
        const auto& [config, kind] : std::vector<std::pair<const char*, const char*>>{
            {R"({"architectures":["LlamaForCausalLMEagle3"],"draft_vocab_size":8,"ptd_token_id":3})",
             "a P-EAGLE drafter"},
            {R"({"architectures":["PeagleLlamaForCausalLM"]})", "a P-EAGLE drafter"},
            {R"({"speculators_model_type":"peagle","draft_vocab_size":8})", "a P-EAGLE drafter"},
            {R"({"speculators_model_type":"dspark","draft_vocab_size":8})", "a DSpark drafter"},
            {R"({"speculators_model_type":"mtp"})", "an MTP drafter"},
            {R"({"speculators_model_type":"sprout","draft_vocab_size":8})",
             "a drafter of the kind 'sprout'"},
            {R"({"architectures":["Qwen3DSparkModel"],"markov_rank":32})", "a DSpark drafter"},
            {R"({"architectures":["DFlashDraftModel"],"dflash_config":{"projector_type":"dspark"},
              "markov_rank":8})",
             "a DSpark drafter"},
            {R"({"model_type":"qwen3","dflash_config":{"block_size":8}})", "a DFlash drafter"},
            {R"({"dflash_config":{"selector_rank":8}})", "a DFlash2 drafter"},
            {R"({"architectures":["Gemma4AssistantForCausalLM"]})", "an MTP drafter"},
            {R"({"architectures":["Qwen3_5MTP"]})", "an MTP drafter"},
            {R"({"model_type":"mlp_speculator"})", "an MLP speculator"}})
        EXPECT_TRUE(has(refusal(config), std::string("head: ") + kind + ", which"))
            << config << ": " << refusal(config);
}

TEST_F(ForeignDrafters, AreNamedByTheirTensors) {
    const std::string plain = R"({"model_type":"llama","draft_vocab_size":8})";
    for (const auto& [tensor, kind] : std::vector<std::pair<const char*, const char*>>{
             {"mask_hidden", "a P-EAGLE drafter"},
             {"efficient_lm_head.weight", "an EAGLE-4 drafter"},
             {"markov_head.markov_w1.weight", "a DSpark drafter"},
             {"candidate_selector.hidden_projection.weight", "a DFlash2 drafter"}}) {
        folder_.write("head/config.json", plain);
        const std::string error = refusal(plain, {"fc.weight", tensor});
        EXPECT_TRUE(has(error, std::string("head: ") + kind + ", which")) << error;
    }
    for (const char* tensor : {"mtp_layers.0.input_proj.weight", "mtp.fc.weight"})
        EXPECT_TRUE(has(refusal(R"({"model_type":"llama"})", {tensor}), "a model with MTP layers"));
    EXPECT_TRUE(has(refusal(config_of("mtp"), {"mtp.fc.weight"}), "a model with MTP layers"));
}

// Files as llama.cpp's converter writes them: one architecture stands for three kinds.
TEST_F(ForeignDrafters, AreNamedInGgufFiles) {
    const auto file = [&](const char* architecture, const char* key, const char* tensor) {
        GgufWriter writer;
        writer.string("general.architecture", architecture);
        writer.u32(std::string(architecture) + "." + key, 2);
        writer.tensor({.name = tensor, .dims = {4}, .data = std::string(16, '\0')});
        const auto path = folder_.write("head.gguf", writer.file());
        return error_of([&] { open_head(path); });
    };
    const auto expect = [&](const std::string& error, const std::string& kind) {
        EXPECT_TRUE(has(error, "head.gguf: " + kind + ", which aerie does not run")) << error;
    };
    expect(file("dflash", "block_size", "fc.weight"), "a DFlash drafter");
    expect(file("dflash", "conv_kernel_size", "fc.weight"), "a DFlash2 drafter");
    expect(file("dflash", "block_size", "selector_predecessor.weight"), "a DFlash2 drafter");
    expect(file("dflash", "block_size", "markov_w1.weight"), "a DSpark drafter");
    expect(file("dspark", "block_size", "fc.weight"), "a DSpark drafter");
    expect(file("gemma4-assistant", "block_count", "nextn.pre_projection.weight"),
           "an MTP drafter");
    const std::string mtp = file("qwen35", "nextn_predict_layers", "blk.4.nextn.eh_proj.weight");
    EXPECT_TRUE(has(mtp, "'qwen35', with MTP layers; implemented are llama")) << mtp;
}

TEST_F(ForeignDrafters, Eagle3IsSeenInEverySpelling) {
    for (const char* name : {"specforge-eagle3", "speculators-eagle3", "eagle3-deepspec"}) {
        folder_.write(std::string(name) + "/config.json", config_of(name));
        EXPECT_EQ(head_kind(folder_.path() / name).name, "an EAGLE-3 head") << name;
        const std::string error = error_of([&] { open_head(folder_.path() / name); });
        EXPECT_TRUE(has(error, "EAGLE-3 head, and no model.safetensors")) << error;
        const HeadConfig config = head_of_config(Json::parse(config_of(name), name));
        const bool is_deepspec = std::string(name) == "eagle3-deepspec";
        const std::vector<int> taps = {2, 3, 5}, five = {1, 2, 3, 4, 5};
        EXPECT_EQ(eagle3_shape(config).taps, is_deepspec ? five : taps) << name;
        EXPECT_EQ(eagle3_shape(config).vocab, is_deepspec ? 4096 : 1024) << name;
        EXPECT_EQ(config.attention.head_dim, name[4] == 'f' ? 64 : 32) << name;
    }
}

// The error is the head's own fault, and not that it is no EAGLE head.
TEST_F(ForeignDrafters, TheTrueCauseIsSaid) {
    folder_.write("broken/config.json", "{\"model_type\":");
    EXPECT_TRUE(has(refusal_of(folder_.path() / "broken"), "config.json: not JSON at byte"));
    folder_.write("bare/config.json", R"({"model_type":"llama"})");
    EXPECT_TRUE(has(refusal_of(folder_.path() / "bare"), "no model.safetensors"));
    EXPECT_TRUE(has(refusal_of(folder_.path() / "nothing"), "no model"));
}

}  // namespace
}  // namespace aerie::test
