// Forms of EAGLE-3 heads for the bundled target, with random weights: as files, and in doubles.
#pragma once

#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "engine/bundled.h"
#include "reference/eagle3.h"
#include "tools/write_model.h"

namespace aerie::test {

using reference::Eagle3;
using reference::Exact;
using reference::Matrix;
using reference::RopeScaling;

constexpr int kTargetHidden = 256, kTargetVocab = 4096;

struct Form {
    int hidden = kTargetHidden, intermediate = 160, heads = 4, kv_heads = 2;
    int head_dim = 0;  // 0: the configuration does not say
    std::vector<int> taps = {2, 3, 5};
    int vocab = 320;  // number of logits
    bool norms_taps = false, norms_features = false, norms_residual = false, feeds_normed = false;
    bool qk_norm = false;
    bool own_embedding = false, own_lm_head = true;
    bool qkv_bias = false, all_biases = false;
    double theta = 10000;
    RopeScaling scaling = {};

    int size_of_head() const { return head_dim > 0 ? head_dim : hidden / heads; }
    bool has_qkv_bias() const { return qkv_bias || all_biases; }
};

inline Json config_of(const Form& form) {
    Json config = Json::Object{{"architectures", Json::Array{"LlamaForCausalLMEagle3"}},
                               {"hidden_size", form.hidden},
                               {"intermediate_size", form.intermediate},
                               {"num_attention_heads", form.heads},
                               {"num_key_value_heads", form.kv_heads},
                               {"rms_norm_eps", 1e-5},
                               {"vocab_size", kTargetVocab},
                               {"draft_vocab_size", form.vocab},
                               {"target_hidden_size", kTargetHidden},
                               {"rope_theta", form.theta},
                               {"norm_output", form.feeds_normed},
                               {"norm_before_fc", form.norms_features},
                               {"norm_before_residual", form.norms_residual},
                               {"qkv_bias", form.qkv_bias},
                               {"attention_bias", form.all_biases},
                               {"mlp_bias", form.all_biases}};
    config.set("eagle_aux_hidden_state_layer_ids", Json::Array(form.taps.begin(), form.taps.end()));
    if (form.head_dim > 0) config.set("head_dim", form.head_dim);
    const RopeScaling& scaling = form.scaling;
    if (scaling.kind == RopeScaling::Kind::linear)
        config.set("rope_scaling",
                   Json::Object{{"rope_type", "linear"}, {"factor", scaling.factor}});
    if (scaling.kind == RopeScaling::Kind::llama3)
        config.set("rope_scaling",
                   Json::Object{{"rope_type", "llama3"},
                                {"factor", scaling.factor},
                                {"low_freq_factor", scaling.low},
                                {"high_freq_factor", scaling.high},
                                {"original_max_position_embeddings", scaling.trained}});
    return config;
}

// Tensors by their names in the files; vectors have one row.
using Tensors = std::map<std::string, Matrix>;

inline void add_layer(Tensors& tensors, const Form& form,
                      const std::function<Matrix(int rows, int columns)>& matrix,
                      const std::function<Matrix(int columns, float middle)>& vector) {
    const int hidden = form.hidden, q = form.heads * form.size_of_head(),
              kv = form.kv_heads * form.size_of_head();
    const std::string layer = "midlayer.", attention = layer + "self_attn.", mlp = layer + "mlp.";
    const std::pair<const char*, int> parts[] = {{"q_proj", q}, {"k_proj", kv}, {"v_proj", kv}};
    for (const auto& [part, rows] : parts) {
        tensors[attention + part + ".weight"] = matrix(rows, 2 * hidden);
        if (form.has_qkv_bias()) tensors[attention + part + ".bias"] = vector(rows, 0);
    }
    tensors[attention + "o_proj.weight"] = matrix(hidden, q);
    for (const char* part : {"gate_proj", "up_proj"})
        tensors[mlp + part + ".weight"] = matrix(form.intermediate, hidden);
    tensors[mlp + "down_proj.weight"] = matrix(hidden, form.intermediate);
    for (const char* norm : {"input_layernorm", "hidden_norm", "post_attention_layernorm"})
        tensors[layer + norm + ".weight"] = vector(hidden, 1);
    for (const char* part : {"q_norm", "k_norm"})
        if (form.qk_norm) tensors[attention + part + ".weight"] = vector(form.size_of_head(), 1);
    if (!form.all_biases) return;
    tensors[attention + "o_proj.bias"] = vector(hidden, 0);
    for (const char* part : {"gate_proj", "up_proj"})
        tensors[mlp + part + ".bias"] = vector(form.intermediate, 0);
    tensors[mlp + "down_proj.bias"] = vector(hidden, 0);
}

// All tensors but d2t and t2d.
inline Tensors random_tensors(const Form& form) {
    unsigned seed = 1;
    const auto matrix = [&](int rows, int columns) {
        return reference::random_matrix(rows, columns, ++seed, 1 / std::sqrt(float(columns)));
    };
    const auto vector = [&](int columns, float middle) {
        Matrix values = reference::random_matrix(1, columns, ++seed, 0.5f);
        for (float& value : values.data) value += middle;
        return values;
    };
    Tensors tensors;
    const int taps = int(form.taps.size());
    tensors["fc.weight"] = matrix(form.hidden, taps * kTargetHidden);
    for (int i = 0; form.norms_taps && i < taps; ++i)
        tensors["fc_norm." + std::to_string(i) + ".weight"] = vector(kTargetHidden, 1);
    add_layer(tensors, form, matrix, vector);
    if (form.norms_features) tensors["input_norm.weight"] = vector(taps * kTargetHidden, 1);
    tensors["norm.weight"] = vector(form.hidden, 1);
    if (form.own_lm_head) tensors["lm_head.weight"] = matrix(form.vocab, form.hidden);
    if (form.own_embedding) tensors["embed_tokens.weight"] = matrix(kTargetVocab, form.hidden);
    return tensors;
}

// The target's id of the head's token `id`.
inline int target_id(const Form& form, int id) {
    return form.vocab == kTargetVocab ? id : id * 11 + id % 7;
}

inline std::vector<Stored> stored(const Form& form, const Tensors& tensors) {
    std::vector<Stored> all;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape, DType type,
                         const auto& data) {
        all.push_back({name, std::move(shape), type,
                       std::string(reinterpret_cast<const char*>(data.data()),
                                   data.size() * sizeof(data[0]))});
    };
    for (const auto& [name, matrix] : tensors) {
        const bool is_vector =
            name.ends_with("norm.weight") || name.ends_with(".bias") || name.starts_with("fc_norm");
        add(name,
            is_vector ? std::vector<int64_t>{matrix.cols}
                      : std::vector<int64_t>{matrix.rows, matrix.cols},
            DType::F32, matrix.data);
    }
    if (form.vocab == kTargetVocab) return all;
    std::vector<int64_t> offsets;
    std::vector<char> members(kTargetVocab);
    for (int id = 0; id < form.vocab; ++id) {
        offsets.push_back(target_id(form, id) - id);
        members[size_t(target_id(form, id))] = 1;
    }
    add("d2t", {form.vocab}, DType::I64, offsets);
    add("t2d", {kTargetVocab}, DType::Bool, members);
    return all;
}

inline Matrix target_tensor(const std::string& wanted) {
    static const std::vector<Stored> all = Stored::all_of(models_dir() / "aerie-tiny");
    for (const Stored& one : all) {
        if (one.name != wanted) continue;
        Matrix matrix(int(one.shape[0]), int(one.shape[1]));
        std::memcpy(matrix.data.data(), one.as(DType::F32).data.data(), matrix.data.size() * 4);
        return matrix;
    }
    throw Error("no tensor " + wanted);
}

inline Exact exact(const Matrix& matrix) {
    Exact out(matrix.rows, matrix.cols);
    std::copy(matrix.data.begin(), matrix.data.end(), out.data.begin());
    return out;
}

inline Eagle3 reference_of(const Form& form, const Tensors& tensors) {
    const auto tensor = [&](const std::string& name) {
        const auto found = tensors.find(name);
        return found == tensors.end() ? Exact() : exact(found->second);
    };
    const std::string layer = "midlayer.", attention = layer + "self_attn.", mlp = layer + "mlp.";
    Eagle3 head;
    head.fc = tensor("fc.weight");
    head.embedding = form.own_embedding ? tensor("embed_tokens.weight")
                                        : exact(target_tensor("model.embed_tokens.weight"));
    head.lm_head =
        form.own_lm_head ? tensor("lm_head.weight") : exact(target_tensor("lm_head.weight"));
    const std::tuple<const char*, Exact&, Exact&> parts[] = {
        {"self_attn.q_proj", head.q, head.q_bias},    {"self_attn.k_proj", head.k, head.k_bias},
        {"self_attn.v_proj", head.v, head.v_bias},    {"self_attn.o_proj", head.o, head.o_bias},
        {"mlp.gate_proj", head.gate, head.gate_bias}, {"mlp.up_proj", head.up, head.up_bias},
        {"mlp.down_proj", head.down, head.down_bias}};
    for (const auto& [name, weight, bias] : parts) {
        weight = tensor(layer + name + ".weight");
        bias = tensor(layer + name + ".bias");
    }
    head.input_norm = tensor(layer + "input_layernorm.weight");
    head.hidden_norm = tensor(layer + "hidden_norm.weight");
    head.ffn_norm = tensor(layer + "post_attention_layernorm.weight");
    head.output_norm = tensor("norm.weight");
    for (size_t i = 0; form.norms_taps && i < form.taps.size(); ++i)
        head.tap_norms.push_back(tensor("fc_norm." + std::to_string(i) + ".weight"));
    head.frequencies = reference::rope_frequencies(form.theta, form.size_of_head(), form.scaling);
    head.heads = form.heads;
    head.kv_heads = form.kv_heads;
    head.epsilon = 1e-5;
    head.features_norm = tensor("input_norm.weight");
    head.q_norm = tensor(layer + "self_attn.q_norm.weight");
    head.k_norm = tensor(layer + "self_attn.k_norm.weight");
    head.adds_to_normed = form.norms_residual;
    head.feeds_normed = form.feeds_normed;
    return head;
}

}  // namespace aerie::test
