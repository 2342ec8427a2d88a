// A good EAGLE-3 head in parts that a test can spoil, and a target to try it on.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>

#include "draft/head_of_config.h"
#include "draft/heads/eagle3_files.h"
#include "engine/generation.h"
#include "engine/model.h"
#include "io/damage.h"
#include "model/make/random_weights.h"
#include "model/toy_model.h"
#include "text/write_model.h"
#include "tools/write_model.h"

namespace aerie::test {

namespace fs = std::filesystem;

constexpr int kVocab = 288, kDraftVocab = 96, kHidden = 32, kLayers = 6;

inline ModelConfig target_shape() {
    ModelConfig config;
    config.hidden = kHidden;
    config.intermediate = 64;
    config.layers = kLayers;
    config.vocab = kVocab;
    config.context = 128;
    config.attention = {2, 1, 16};
    return config;
}

inline Json head_fields() {
    ModelConfig config = target_shape();
    config.layers = 1;
    Json json = Json::parse(config_json(config), "head");
    json.set("architectures", Json::Array{"LlamaForCausalLMEagle3"});
    json.set("draft_vocab_size", kDraftVocab);
    json.set("rope_theta", 1e4);
    json.set("rms_norm_eps", 1e-5);
    json.set("eagle_aux_hidden_state_layer_ids", Json::Array{2, 3, 5});
    return json;
}

// A head before it is written: fields and tensors by name, which a test can spoil.
struct Parts {
    Json config = head_fields();
    std::map<std::string, Stored> tensors = good_tensors();

    static std::map<std::string, Stored> good_tensors() {
        std::map<std::string, Stored> all;
        const RandomWeights random(DType::F32, 5);
        const HeadConfig shape = head_of_config(head_fields());
        for (const TensorShape& tensor : eagle3_tensors(shape)) {
            Stored stored{tensor.name, tensor.shape, DType::F32,
                          std::string(size_t(tensor.elements()) * sizeof(float), 0)};
            random.fill(tensor.name, 0, std::as_writable_bytes(std::span(stored.data)));
            all[tensor.name] = std::move(stored);
        }
        std::vector<int64_t> offsets;
        std::string members(kVocab, 0);
        for (int i = 0; i < kDraftVocab; ++i) {
            offsets.push_back(2 * i);  // target ids 0, 3, 6, ...: every third token
            members[size_t(3 * i)] = 1;
        }
        all["d2t"] = numbers("d2t", DType::I64, offsets);
        all["t2d"] = {"t2d", {kVocab}, DType::Bool, members};
        return all;
    }

    template <class T>
    static Stored numbers(const std::string& name, DType type, const std::vector<T>& values) {
        std::string data(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
        return {name, {int64_t(values.size())}, type, data};
    }

    void set(const std::string& key, const Json& value) {
        Json changed{Json::Object{}};
        for (const auto& [name, old] : *config.object())
            if (name != key) changed.set(name, old);
        changed.set(key, value);
        config = changed;
    }
    Stored& tensor(const std::string& name) { return tensors.at(name); }
    void offset(int at, int64_t value) {
        std::memcpy(&tensor("d2t").data[size_t(at) * sizeof(value)], &value, sizeof(value));
    }
    std::vector<Stored> stored() const {
        std::vector<Stored> list;
        for (const auto& [name, one] : tensors) list.push_back(one);
        return list;
    }
};

using Spoil = std::function<void(Parts&)>;

class HostileHeads : public testing::Test {
  protected:
    void SetUp() override {
        write_toy_model(target(), target_shape(), DType::F16, 0.3f, 1);
        write_text(target() / "tokenizer.model", ModelWriter{}.file());
        write_text(target() / "tokenizer_config.json", "{}");
        fs::create_directories(head());
        plain_ = ids("none", head());
    }

    fs::path target() const { return folder_.path() / "target"; }
    fs::path head() const { return folder_.path() / "the-head"; }

    // The error that a spoilt head gives; empty if it drafts and the text is that of plain
    // decoding.
    std::string said(const Spoil& spoil) const {
        Parts parts;
        spoil(parts);
        write_text(head() / "config.json", parts.config.dump());
        write_text(head() / "model.safetensors", safetensors_of(parts.stored()));
        return said_of(head());
    }
    std::string said_of(const fs::path& path) const {
        const std::string error = error_of([&] { EXPECT_EQ(ids("eagle3", path), plain_); });
        EXPECT_LT(error.size(), 500u) << error;
        if (!error.empty()) std::printf("%s\n", error.c_str());
        return error;
    }

    void expect_refused(const std::string& name, const Spoil& spoil, const std::string& why) const {
        const std::string error = said(spoil);
        EXPECT_NE(error.find("the-head"), std::string::npos) << name << ": " << error;
        EXPECT_NE(error.find(why), std::string::npos) << name << ": " << error;
    }
    void expect_runs(const std::string& name, const Spoil& spoil) const {
        EXPECT_EQ(said(spoil), "") << name;
    }
    // The same for one field that is set to `value`.
    void expect_refused(const char* key, const Json& value, const std::string& why) const {
        expect_refused(
            std::string(key) + " = " + value.dump(), [&](Parts& parts) { parts.set(key, value); },
            why);
    }

    const TestFolder folder_;

  private:
    std::vector<int> ids(const std::string& method, const fs::path& head) const {
        LoadOptions options;
        options.device = "cpu";
        options.threads = 2;
        options.model = target();
        options.head = head;
        options.context = 64;
        options.draft.method = method;
        options.draft.tree = TreeShape{12, 3, 4};
        Model model(ModelFiles::open(options), options);
        const Tokenizer tokenizer = load_tokenizer(model.files());
        const Model::Drafting drafting = model.start_session(options.draft);
        Request request;
        request.prompt = tokenizer.encode_from_start("ab \n");
        request.max_tokens = 6;
        return generate(*drafting.session, tokenizer, request).ids;
    }

    std::vector<int> plain_;
};

}  // namespace aerie::test
