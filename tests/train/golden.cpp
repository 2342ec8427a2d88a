#include "train/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/quant.h"
#include "io/checkpoint.h"
#include "io/input_file.h"
#include "paths.h"

namespace aerie::test {

namespace fs = std::filesystem;
using train::HeadShape;
using train::TargetOutputs;
using train::TrainingTexts;

fs::path train_data() {
    const char* given = std::getenv("AERIE_TEST_TRAIN");
    return given ? fs::path(given) : test_data_dir() / "train";
}

std::vector<double> numbers(const Json& array) {
    std::vector<double> found;
    for (const Json& value : *array.array()) found.push_back(value.number());
    return found;
}

Golden::Golden(const std::string& of) : name(of) {
    const fs::path file = train_data() / (of + ".json");
    record = Json::parse(read_text(file, size_t(16) << 20), file.string());
}

const Json& Golden::at(std::initializer_list<const char*> path) const {
    const Json* json = &record;
    for (const char* key : path) {
        json = json->find(key);
        if (!json) throw Error(name + ": no " + key);
    }
    return *json;
}

GoldenTexts::GoldenTexts() {
    const fs::path file = train_data() / "texts.json";
    const Json json = Json::parse(read_text(file, size_t(16) << 20), file.string());
    for (const Json& sequence : *json.find("sequences")->array()) {
        std::vector<int> ids;
        for (const double id : numbers(*sequence.find("ids"))) ids.push_back(int(id));
        std::vector<bool> mask;
        for (const char c : *sequence.find("mask")->string()) mask.push_back(c == '1');
        tokens_.push_back(ids);
        masks_.push_back(mask);
    }
}

TrainingTexts GoldenTexts::batch(int step) const {
    TrainingTexts texts;
    for (int i = 0; i < 4; ++i) {
        const size_t at = size_t(4 * step + i) % tokens_.size();
        texts.tokens.push_back(tokens_[at]);
        texts.mask.push_back(masks_[at]);
    }
    return texts;
}

std::vector<float> floats_of(const fs::path& folder, const std::string& name) {
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const NamedTensor* tensor = checkpoint.find(name);
    if (!tensor) throw Error(folder.string() + ": no tensor " + name);
    size_t count = 1;
    for (const int64_t size : tensor->shape) count *= size_t(size);
    const auto bytes = checkpoint.read(*tensor);
    std::vector<float> floats(count);
    unpack(floats.data(), bytes.get(), tensor->dtype, count);
    return floats;
}

TinyTarget::TinyTarget(TrainingDevice& device) : device_(device) {
    const fs::path folder = models_dir() / "aerie-tiny";
    // Several tensors of so many columns below each other.
    const auto matrix = [&](int cols, const std::vector<std::string>& names) {
        std::vector<float> all;
        for (const std::string& name : names) {
            const std::vector<float> part = floats_of(folder, name);
            all.insert(all.end(), part.begin(), part.end());
        }
        Matrix made = device.allocate(int(all.size()) / cols, cols);
        device.write(made, std::span<const float>(all));
        return made;
    };
    embedding = matrix(kHidden, {"model.embed_tokens.weight"});
    lm_head = matrix(kHidden, {"lm_head.weight"});
    norm_ = matrix(kHidden, {"model.norm.weight"});
    for (int l = 0; l < 6; ++l) {
        const std::string layer = "model.layers." + std::to_string(l) + ".";
        const auto of = [&](const char* name) { return layer + name + ".weight"; };
        layers_.push_back({matrix(kHidden, {of("input_layernorm")}),
                           matrix(kHidden, {of("self_attn.q_proj"), of("self_attn.k_proj"),
                                            of("self_attn.v_proj")}),
                           matrix(kHidden, {of("self_attn.o_proj")}),
                           matrix(kHidden, {of("post_attention_layernorm")}),
                           matrix(kHidden, {of("mlp.gate_proj"), of("mlp.up_proj")}),
                           matrix(704, {of("mlp.down_proj")})});
    }
}

TinyTarget::Outputs TinyTarget::run(const TrainingTexts& texts) {
    std::vector<int> tokens, positions, first = {0};
    for (const std::vector<int>& sequence : texts.tokens) {
        for (size_t i = 0; i < sequence.size(); ++i) positions.push_back(int(i));
        tokens.insert(tokens.end(), sequence.begin(), sequence.end());
        first.push_back(int(tokens.size()));
    }
    const int rows = int(tokens.size());
    const auto scratch = [&](int cols) { return device_.allocate(rows, cols); };
    const Matrix x = scratch(kHidden), normed = scratch(kHidden), inverse = scratch(1),
                 qkv = scratch(512), attended = scratch(kHidden), lse = scratch(4),
                 gate_up = scratch(1408), gated = scratch(704), logits = scratch(kVocab);
    std::vector<std::vector<double>> taps;
    const auto values = [&](const Matrix& m) {
        std::vector<double> read(m.size());
        device_.read(m, read);
        return read;
    };
    device_.gather(x, embedding, tokens);
    for (size_t l = 0; l < layers_.size(); ++l) {
        const Layer& layer = layers_[l];
        if (l == 2 || l == 3 || l == 5) taps.push_back(values(x));
        device_.rms_norm(normed, inverse, x, layer.attention_norm, 1e-5);
        device_.multiply(Product::a_bt, qkv, normed, layer.qkv, false);
        device_.rotate(qkv.col_range(0, 384), positions, 64, 10000, false);
        const Matrix keys[] = {qkv.col_range(256, 128)}, of[] = {qkv.col_range(384, 128)};
        device_.attend(attended, lse, qkv.col_range(0, 256), keys, of, {4, 2, 64, first});
        device_.multiply(Product::a_bt, x, attended, layer.o, true);
        device_.rms_norm(normed, inverse, x, layer.mlp_norm, 1e-5);
        device_.multiply(Product::a_bt, gate_up, normed, layer.gate_up, false);
        device_.gate(gated, gate_up);
        device_.multiply(Product::a_bt, x, gated, layer.down, true);
    }
    device_.rms_norm(normed, inverse, x, norm_, 1e-5);
    device_.multiply(Product::a_bt, logits, normed, lm_head, false);
    Outputs made{{}, values(normed), values(logits)};
    for (size_t r = 0; r < size_t(rows); ++r)
        for (const std::vector<double>& tap : taps)
            made.taps.insert(made.taps.end(), tap.begin() + int64_t(r) * kHidden,
                             tap.begin() + int64_t(r + 1) * kHidden);
    return made;
}

namespace {

bool is_eagle3(const std::string& name) {
    return name.starts_with("eagle3");
}

fs::path start_of(const std::string& name) {
    if (!name.ends_with("-bundled")) return train_data() / ("init-" + name);
    return models_dir() / (is_eagle3(name) ? "aerie-tiny-eagle3" : "aerie-tiny-eagle");
}

std::vector<int> draft_ids_of(const std::string& name) {
    if (!is_eagle3(name)) return {};
    const fs::path folder = start_of(name);
    const Checkpoint checkpoint = Checkpoint::open(folder);
    const NamedTensor* tensor = checkpoint.find("d2t");
    if (!tensor) throw Error(folder.string() + ": no d2t");
    const auto bytes = checkpoint.read(*tensor);
    std::vector<int64_t> offsets(size_t(tensor->shape[0]));
    std::memcpy(offsets.data(), bytes.get(), offsets.size() * sizeof(int64_t));
    std::vector<int> ids;
    for (size_t i = 0; i < offsets.size(); ++i) ids.push_back(int(int64_t(i) + offsets[i]));
    return ids;
}

HeadShape shape_of(const std::string& name) {
    return {.hidden = 256,
            .intermediate = 704,
            .heads = 4,
            .kv_heads = 2,
            .head_dim = 64,
            .taps = is_eagle3(name) ? 3 : 1,
            .vocab = 4096,
            .draft_vocab = int(draft_ids_of(name).size())};
}

}  // namespace

StartedHead::StartedHead(TrainingDevice& device, const std::string& name)
    : head(device, shape_of(name)), draft_ids(draft_ids_of(name)) {
    for (const train::Parameter& parameter : head.parameters())
        device.write(parameter.value,
                     std::span<const float>(floats_of(start_of(name), parameter.name)));
}

TargetOutputs outputs_for(TrainingDevice& device, const TrainingTexts& texts,
                          const TinyTarget::Outputs& made, std::span<const int> draft_ids,
                          std::span<const float> noise) {
    const bool is_eagle2 = draft_ids.empty();
    std::vector<int> all(TinyTarget::kVocab);
    for (size_t i = 0; i < all.size(); ++i) all[i] = int(i);
    const std::span<const int> ids = is_eagle2 ? std::span<const int>(all) : draft_ids;
    const std::vector<double>& source = is_eagle2 ? made.features : made.taps;
    const size_t width = is_eagle2 ? TinyTarget::kHidden : 3 * TinyTarget::kHidden;
    std::vector<double> features, goals, targets;
    TargetOutputs outputs;
    size_t token = 0;
    for (const std::vector<int>& sequence : texts.tokens) {
        for (size_t i = 0; i + 1 < sequence.size(); ++i) {
            const double* const row = source.data() + (token + i) * width;
            for (size_t c = 0; c < width; ++c)
                features.push_back(row[c] + (noise.empty() ? 0.0 : double(noise[features.size()])));
            if (is_eagle2) goals.insert(goals.end(), row + width, row + 2 * width);
            const double* const logits = made.logits.data() + (token + i + 1) * TinyTarget::kVocab;
            const int64_t best = std::max_element(logits, logits + TinyTarget::kVocab) - logits;
            outputs.can_be_said.push_back(std::find(ids.begin(), ids.end(), int(best)) !=
                                          ids.end());
            double max = -1e300, sum = 0;
            for (const int id : ids) max = std::max(max, logits[id]);
            for (const int id : ids) sum += std::exp(logits[id] - max);
            for (const int id : ids) targets.push_back(std::exp(logits[id] - max) / sum);
        }
        token += sequence.size();
    }
    const auto matrix = [&](const std::vector<double>& values, size_t cols) {
        const Matrix m = device.allocate(int(values.size() / cols), int(cols));
        device.write(m, std::span<const double>(values));
        return m;
    };
    outputs.features = matrix(features, width);
    if (is_eagle2) outputs.goals = matrix(goals, width);
    outputs.targets = matrix(targets, ids.size());
    return outputs;
}

void expect_summary(const Json& summary, std::span<const double> tensor, double tolerance,
                    const std::string& what, double scale) {
    double sum = 0, squares = 0, weighted = 0;
    for (size_t k = 0; k < tensor.size(); ++k) {
        sum += tensor[k];
        squares += tensor[k] * tensor[k];
        weighted += tensor[k] * (double(k % 97) - 48);
    }
    const double norm = scale > 0 ? scale : std::sqrt(summary.find("sumsq")->number());
    const double many = std::sqrt(double(tensor.size()));
    EXPECT_NEAR(sum, summary.find("sum")->number(), tolerance * norm * many) << what;
    EXPECT_NEAR(weighted, summary.find("wsum")->number(), tolerance * 30 * norm * many) << what;
    if (scale == 0) {
        EXPECT_NEAR(std::sqrt(squares), norm, tolerance * norm) << what;
    }
    const std::vector<double> at = numbers(*summary.find("index")),
                              want = numbers(*summary.find("value"));
    ASSERT_EQ(at.size(), want.size());
    for (size_t i = 0; i < at.size(); ++i)
        EXPECT_NEAR(tensor[size_t(at[i])], want[i], tolerance * norm) << what << " " << at[i];
}

}  // namespace aerie::test
