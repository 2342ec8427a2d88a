// Generated hostile EAGLE-3 heads: each is refused by an Error of one line that names its files and
// says what does not fit, or gives the same text drafted and plain. The tests are meant to run
// under AddressSanitizer, too.
#include <gtest/gtest.h>

#include <climits>
#include <cmath>

#include "engine/hostile_heads.h"

namespace aerie::test {
namespace {

TEST_F(HostileHeads, TheGoodOneRuns) {
    expect_runs("good", [](Parts&) {});
    expect_runs("no t2d", [](Parts& parts) { parts.tensors.erase("t2d"); });
    expect_runs("i32", [](Parts& parts) {
        std::vector<int32_t> offsets;
        for (int i = 0; i < kDraftVocab; ++i) offsets.push_back(2 * i);
        parts.tensor("d2t") = Parts::numbers("d2t", DType::I32, offsets);
    });
    expect_runs("a layer's number for the target's",
                [](Parts& parts) { parts.set("num_hidden_layers", 40); });
    expect_runs("the verifier's tensors", [](Parts& parts) {
        for (const char* name : {"verifier_lm_head.weight", "verifier_norm.weight"}) {
            parts.tensors[name] = parts.tensor("norm.weight");
            parts.tensor(name).name = name;
        }
    });
}

TEST_F(HostileHeads, OffsetsThatLeadNowhere) {
    const std::string nowhere = "which leads to no token";
    for (const int at : {0, 1, kDraftVocab - 1})
        for (const int64_t value : {int64_t(INT64_MIN), int64_t(INT64_MIN) + at, int64_t(-1) - at,
                                    int64_t(kVocab) - at, int64_t(INT32_MAX), int64_t(UINT32_MAX),
                                    int64_t(1) << 32, int64_t(INT64_MAX) - at, int64_t(INT64_MAX)})
            expect_refused(
                std::to_string(at) + ": " + std::to_string(value),
                [&](Parts& parts) { parts.offset(at, value); }, nowhere);
    expect_refused(
        "twice", [](Parts& parts) { parts.offset(1, -1); }, "a token that another has");
    expect_refused(
        "floats",
        [](Parts& parts) {
            parts.tensor("d2t") =
                Parts::numbers("d2t", DType::F32, std::vector<float>(kDraftVocab, float(NAN)));
        },
        "'d2t' is f32 [96], expected i64 [96]");
    expect_refused(
        "bools",
        [](Parts& parts) {
            parts.tensor("d2t") = {"d2t", {kDraftVocab}, DType::Bool, std::string(kDraftVocab, 0)};
        },
        "'d2t' is bool");
    for (const size_t count : {0, 1, kDraftVocab - 1, kDraftVocab + 1, kVocab})
        expect_refused(
            std::to_string(count),
            [&](Parts& parts) {
                parts.tensor("d2t") =
                    Parts::numbers("d2t", DType::I64, std::vector<int64_t>(count));
            },
            "expected i64 [96]");
    expect_refused(
        "matrix",
        [](Parts& parts) {
            parts.tensor("d2t").shape = {kDraftVocab, 1};
        },
        "[96, 1]");
}

TEST_F(HostileHeads, MembersThatDisagree) {
    for (const int at : {0, 1, kVocab - 1})
        expect_refused(
            std::to_string(at), [&](Parts& parts) { parts.tensor("t2d").data[size_t(at)] ^= 1; },
            "'d2t' disagree about token " + std::to_string(at));
    expect_refused(
        "short",
        [](Parts& parts) {
            parts.tensor("t2d").shape = {kVocab - 1};
            parts.tensor("t2d").data.pop_back();
        },
        "expected bool [288]");
    expect_refused(
        "numbers",
        [](Parts& parts) {
            parts.tensor("t2d") = Parts::numbers("t2d", DType::I64, std::vector<int64_t>(kVocab));
        },
        "expected bool [288]");
    // The same holds if the two vocabularies are equal.
    expect_refused(
        "whole vocabulary",
        [](Parts& parts) {
            parts.set("draft_vocab_size", kVocab);
            parts.tensor("lm_head.weight") = parts.tensor("embed_tokens.weight");
            parts.tensor("lm_head.weight").name = "lm_head.weight";
        },
        "'d2t' is i64 [96], expected i64 [288]");
}

TEST_F(HostileHeads, EachTensorInTurn) {
    for (const auto& [name, good] : Parts::good_tensors()) {
        if (name == "t2d") continue;
        if (name != "embed_tokens.weight")
            expect_refused(
                "no " + name, [&](Parts& parts) { parts.tensors.erase(name); }, "'" + name + "'");
        if (name == "d2t") continue;
        expect_refused(
            name + " in i64",
            [&](Parts& parts) {
                Stored& tensor = parts.tensor(name);
                tensor.dtype = DType::I64;
                tensor.data += tensor.data;
            },
            name);
        for (size_t dim = 0; dim < good.shape.size(); ++dim)
            for (const int64_t factor : {0, 2})
                expect_refused(
                    name + " of another shape",
                    [&](Parts& parts) {
                        Stored& tensor = parts.tensor(name);
                        tensor.shape[dim] *= factor;
                        tensor.data = factor > 0 ? tensor.data + tensor.data : "";
                    },
                    name);
        expect_refused(
            name + " with a dimension more",
            [&](Parts& parts) { parts.tensor(name).shape.push_back(1); }, name);
        expect_refused(
            name + " twice",
            [&](Parts& parts) {
                Stored copy = good;
                copy.name = "model." + name;
                parts.tensors[copy.name] = copy;
            },
            "both 'model." + name + "' and '" + name + "'");
    }
    expect_runs("no embedding", [](Parts& parts) { parts.tensors.erase("embed_tokens.weight"); });
}

TEST_F(HostileHeads, TensorsOfSomethingElse) {
    for (const char* name :
         {"fc.bias", "midlayer.self_attn.q_proj.bias", "layers.1.mlp.up_proj.weight",
          "fc_norm.1.weight", "midlayer.self_attn.k_norm.weight", "", "midlayer", "mtp.fc.weight"})
        expect_refused(
            name,
            [&](Parts& parts) {
                parts.tensors[name] = parts.tensor("norm.weight");
                parts.tensor(name).name = name;
            },
            "is no part of an EAGLE-3 head");
    expect_refused(
        "layer under both names",
        [](Parts& parts) {
            Stored copy = parts.tensor("midlayer.hidden_norm.weight");
            copy.name = "layers.0.hidden_norm.weight";
            parts.tensors[copy.name] = copy;
        },
        "both 'layers.0.hidden_norm.weight' and 'midlayer.hidden_norm.weight'");
    for (const char* norm : {"norm_before_fc", "fc_norm", "attention_bias", "mlp_bias"})
        expect_refused(norm, true, "no tensor '");
}

TEST_F(HostileHeads, FieldsAtTheirExtremes) {
    const std::vector<Json> numbers = {int64_t(INT64_MIN),
                                       -1,
                                       0,
                                       int64_t(INT_MAX),
                                       int64_t(INT64_MAX),
                                       uint64_t(-1),
                                       1e300,
                                       0.5,
                                       "2",
                                       Json::Array{2}};
    for (const char* key : {"hidden_size", "intermediate_size", "vocab_size", "num_attention_heads",
                            "num_key_value_heads", "head_dim", "draft_vocab_size",
                            "target_hidden_size", "truncated_vocab_size"})
        for (const Json& value : numbers) expect_refused(key, value, std::string("'") + key + "'");
    expect_refused("head_dim", 1, "'head_dim'");
    expect_refused("head_dim", 25, "must be even");
    expect_refused("head_dim", 24, "heads of 24 elements");
    expect_refused("num_attention_heads", 3, "");
    expect_refused("num_key_value_heads", 3, "multiple of 'num_key_value_heads'");
    expect_refused("draft_vocab_size", 1, "'draft_vocab_size'");
    expect_refused("draft_vocab_size", kVocab + 1, "'draft_vocab_size'");
    expect_refused("draft_vocab_size", kDraftVocab + 1, "[96]");
    expect_refused("draft_vocab_size", Json(), "expected i64 [288]");
    for (const char* key : {"norm_before_residual", "norm_output", "norm_before_fc"})
        expect_refused(key, 1, "must be true or false");
    for (const char* key : {"transformer_layer_config", "eagle_config"})
        expect_refused(key, Json::Array{}, key);
}

TEST_F(HostileHeads, Taps) {
    const char* key = "eagle_aux_hidden_state_layer_ids";
    const std::string expected = "ascending layers";
    for (const Json& list : std::initializer_list<Json>{
             Json::Array{}, Json::Array{2, 3, -1}, Json::Array{5, 3, 2}, Json::Array{2, 3, 0.5},
             Json::Array{2, 3, int64_t(INT64_MAX)}, Json::Array{2, 3, "5"}, 3, "2,3,5",
             Json::Object{}, Json::Array{0, 0, 1, 1, 2, 2, 3, 3, 4}})
        expect_refused(key, list, expected);
    expect_refused(key, Json::Array{2, 3, kLayers + 1}, "reads layer 7, the target has 6");
    expect_refused(key, Json::Array{1, 3, kLayers}, "reads layer 7, the target has 6");
    for (const Json::Array& list : {Json::Array{2, 3}, Json::Array{2, 3, 4, 5}})
        expect_refused(key, list, "'fc.weight' has shape [32, 96]");
    expect_runs("the last layer's output", [&](Parts& parts) {
        parts.set(key, Json::Array{0, 3, kLayers});
    });
}

TEST_F(HostileHeads, OfAnotherTarget) {
    expect_refused("target_hidden_size", 64, "a target with hidden size 64, this one has 32");
    expect_refused("vocab_size", kVocab + 32, "vocabulary size 320, this one has 288");
    expect_refused("hidden_size", 64, "target with hidden size 64");
    expect_refused("intermediate_size", 128, "[64, 32], expected [128, 32]");
}

TEST_F(HostileHeads, ConfigurationsThatAreNone) {
    said([](Parts&) {});
    for (const char* text : {"", "[]", "3", "null", "\"eagle3\"", "{", "{}"}) {
        write_text(head() / "config.json", text);
        const std::string error = said_of(head());
        EXPECT_NE(error.find("the-head"), std::string::npos) << text << ": " << error;
    }
}

// Such weights are found while they are loaded; if not, the head may draft anything.
TEST_F(HostileHeads, WeightsThatAreNoNumbers) {
    for (const auto& [name, good] : Parts::good_tensors()) {
        if (good.dtype != DType::F32) continue;
        for (const float value : {float(NAN), float(INFINITY), 3e38f}) {
            const std::string error = said([&](Parts& parts) {
                std::string& data = parts.tensor(name).data;
                for (size_t at = 0; at < data.size(); at += sizeof(value))
                    std::memcpy(&data[at], &value, sizeof(value));
            });
            EXPECT_TRUE(error.empty() || (error.find("the-head") != std::string::npos &&
                                          error.find(name) != std::string::npos))
                << name << " of " << value << ": " << error;
        }
    }
}

}  // namespace
}  // namespace aerie::test
