// Hostile EAGLE-3 heads in GGUF files.
#include <gtest/gtest.h>

#include "engine/hostile_heads.h"
#include "io/gguf/names.h"
#include "io/gguf_head.h"

namespace aerie::test {
namespace {

// A head as llama.cpp's converter writes it.
class HostileGgufHeads : public HostileHeads {
  protected:
    fs::path file() const { return folder_.path() / "the-head.gguf"; }
    std::string said(const Parts& parts, const std::function<void(GgufWriter&)>& more = {}) const {
        GgufWriter writer = gguf_head(parts.config, parts.stored(), DType::F32);
        if (more) more(writer);
        write_text(file(), writer.file());
        return said_of(file());
    }
    void expect_refused(const std::string& name, const std::string& error,
                        const std::string& why) const {
        EXPECT_NE(error.find("the-head.gguf"), std::string::npos) << name << ": " << error;
        EXPECT_NE(error.find(why), std::string::npos) << name << ": " << error;
    }
};

TEST_F(HostileGgufHeads, IdsThatAreNone) {
    EXPECT_EQ(said(Parts()), "");
    for (const int at : {0, 1, kDraftVocab - 1})
        for (const int64_t id : {int64_t(-1), int64_t(kVocab), int64_t(INT64_MIN),
                                 int64_t(INT64_MIN) + at, int64_t(INT64_MAX), int64_t(1) << 32}) {
            Parts parts;
            parts.offset(at, int64_t(uint64_t(id) - uint64_t(at)));
            expect_refused(std::to_string(id), said(parts), "which leads to no token");
        }
    Parts twice;
    twice.offset(1, -1);
    expect_refused("twice", said(twice), "a token that another has");
    Parts few;
    few.tensor("d2t") = Parts::numbers("d2t", DType::I64, std::vector<int64_t>(5));
    expect_refused("few", said(few), "expected i64 [96]");
    Parts none;
    none.tensors.erase("d2t");
    expect_refused("none", said(none), "no tensor 'd2t'");
    for (const uint32_t type : {0, 26}) {  // F32, I32
        const auto floats = [&](GgufWriter& writer) {
            writer.tensor({"d2t", type, {kDraftVocab}, std::string(4 * kDraftVocab, 0)});
        };
        expect_refused("type", said(none, floats), type == 0 ? "expected i64" : "no weights");
    }
}

TEST_F(HostileGgufHeads, EachTensorInTurn) {
    for (const auto& [name, good] : Parts::good_tensors()) {
        if (name == "d2t" || name == "t2d") continue;
        const std::string in_file = gguf_place(GgufArchitecture::Eagle3, name)->name;
        Parts without;
        without.tensors.erase(name);
        if (name == "lm_head.weight")
            expect_refused("no " + name, said(without), "without 'lm_head.weight'");
        else if (name != "embed_tokens.weight")
            expect_refused("no " + name, said(without), "'" + in_file + "'");
        Parts wide;
        Stored& tensor = wide.tensor(name);
        tensor.shape.back() *= 2;
        tensor.data += tensor.data;
        expect_refused("wide " + name, said(wide), "'" + in_file + "'");
        Parts twice;
        const auto again = [&](GgufWriter& writer) {
            writer.tensor(gguf_head_tensor(good, DType::F32, 16));
        };
        EXPECT_NE(said(twice, again), "");
    }
    for (const char* name : {"blk.1.attn_q.weight", "blk.0.attn_q_norm.weight", "fc.bias", "t2d"}) {
        const auto more = [&](GgufWriter& writer) {
            writer.tensor({name, 0, {kHidden}, std::string(4 * kHidden, 0)});
        };
        expect_refused(name, said(Parts(), more), "is none of this architecture");
    }
}

TEST_F(HostileGgufHeads, Taps) {
    for (const Json::Array& taps : {Json::Array{}, Json::Array{5, 3, 2}, Json::Array{2, 3, -1},
                                    Json::Array(100000, Json(2))}) {
        Parts parts;
        parts.set("eagle_aux_hidden_state_layer_ids", taps);
        expect_refused(std::to_string(taps.size()), said(parts), "ascending layers");
    }
    Parts high;
    high.set("eagle_aux_hidden_state_layer_ids", Json::Array{2, 3, kLayers + 1});
    expect_refused("high", said(high), "reads layer 7, the target has 6");
}

}  // namespace
}  // namespace aerie::test
