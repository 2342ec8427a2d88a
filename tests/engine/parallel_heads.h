// Medusa and Hydra heads in parts, in all published layouts, and their logits in doubles.
#pragma once

#include <cmath>
#include <functional>
#include <map>

#include "engine/bundled.h"
#include "tools/write_model.h"

namespace aerie::test {

// The layout of a file of such heads.
struct HeadForm {
    bool hydra = false, prefix = false;
    bool own_lm_head = false, lm_head_bias = false;
    int heads = 3, blocks = 1;
    std::string begin = {};  // prefix of Medusa's tensor names

    int inputs(int head) const { return hydra ? head + 2 : 1; }
    // Index of a block in its tensor's name: in Hydra++ the blocks stand between dropouts.
    int place(int block) const { return prefix ? 2 * block + 1 : block; }
    std::string block_name(int head, int block) const {
        return (hydra ? "hydra_mlp." : begin) + std::to_string(head) + "." +
               std::to_string(place(block)) + ".";
    }
    std::string lm_head_name(int head) const {
        if (!hydra) return begin + std::to_string(head) + "." + std::to_string(blocks) + ".";
        return "hydra_lm_head." + std::to_string(head) + (prefix ? ".1." : ".");
    }
    std::string file() const { return hydra ? "hydra_lm_head.pt" : "medusa_lm_head.pt"; }
};

inline LoadOptions options_of(const std::filesystem::path& head, DType type,
                              const std::string& method) {
    LoadOptions options = bundled_options(type);
    options.head = head;
    options.draft.method = method;
    return options;
}

using HeadParts = std::map<std::string, Stored>;

// Values of random sign and size that floats hold exactly.
inline Stored random_part(const std::string& name, std::vector<int64_t> shape, double size) {
    Stored part{name, shape, DType::F32, {}};
    uint64_t state = std::hash<std::string>{}(name) | 1;
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        values.push_back(float((double(state >> 40) / double(1 << 24) - 0.5) * 2 * size));
    }
    part.data.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    return part;
}

inline std::span<const float> floats(const Stored& part) {
    return {reinterpret_cast<const float*>(part.data.data()), part.data.size() / sizeof(float)};
}

inline HeadParts random_parts(const HeadForm& form, int hidden, int vocab, int kv_columns,
                              int intermediate) {
    HeadParts parts;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape, double size) {
        parts[name] = random_part(name, std::move(shape), size);
    };
    for (int i = 0; i < form.heads; ++i) {
        for (int b = 0; b < form.blocks; ++b) {
            const int inputs = b == 0 ? form.inputs(i) : 1;
            const std::string block = form.block_name(i, b);
            for (const char* matrix : {"linear.", "res_connection."}) {
                if (matrix[0] == 'r' && inputs == 1) continue;
                add(block + matrix + "weight", {hidden, inputs * hidden}, 0.05);
                add(block + matrix + "bias", {hidden}, 0.1);
            }
        }
        if (!form.own_lm_head) continue;
        add(form.lm_head_name(i) + "weight", {vocab, hidden}, 0.05);
        if (form.lm_head_bias) add(form.lm_head_name(i) + "bias", {vocab}, 0.1);
    }
    if (!form.prefix) return parts;
    // A layer that adds nothing: its output is the norm of its input.
    const std::string prefix = "prefix_embeding_layer.", layer = prefix + "layers.0.";
    const auto kv = int64_t(kv_columns);
    add(layer + "self_attn.q_proj.weight", {hidden, hidden}, 0.05);
    add(layer + "self_attn.k_proj.weight", {kv, hidden}, 0.05);
    add(layer + "self_attn.v_proj.weight", {kv, hidden}, 0.05);
    add(layer + "self_attn.o_proj.weight", {hidden, hidden}, 0);
    add(layer + "mlp.gate_proj.weight", {intermediate, hidden}, 0.05);
    add(layer + "mlp.up_proj.weight", {intermediate, hidden}, 0.05);
    add(layer + "mlp.down_proj.weight", {hidden, intermediate}, 0);
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"})
        add(layer + norm + ".weight", {hidden}, 1);
    add(prefix + "norm.weight", {hidden}, 1);
    add(prefix + "embed_tokens.weight", {4, hidden}, 1);  // a copy that is never read
    add("input_embed_fn.weight", {4, hidden}, 1);
    return parts;
}

inline std::vector<Stored> list_of(const HeadParts& parts) {
    std::vector<Stored> list;
    for (const auto& [name, part] : parts) list.push_back(part);
    return list;
}

// The configuration as published, which gives no shape.
inline std::string head_json(const HeadForm& form) {
    const std::string name = form.hydra ? "hydra" : "medusa";
    return "{\"" + name + "_num_heads\": 2, \"" + name +
           "_num_layers\": 1, \"base_model_name_or_path\": \"x\"}";
}

using Doubles = std::vector<double>;

inline Doubles times(const Stored& matrix, const Doubles& x, const Stored* bias) {
    const std::span<const float> values = floats(matrix);
    Doubles out(values.size() / x.size());
    for (size_t row = 0; row < out.size(); ++row) {
        for (size_t k = 0; k < x.size(); ++k) out[row] += values[row * x.size() + k] * x[k];
        if (bias) out[row] += floats(*bias)[row];
    }
    return out;
}

// Logits of head i; `x` is its concatenated inputs.
inline Doubles logits_of(const HeadForm& form, const HeadParts& parts, int i, Doubles x,
                         const Stored* target_lm_head) {
    const auto find = [&](const std::string& name) {
        const auto found = parts.find(name);
        return found == parts.end() ? nullptr : &found->second;
    };
    for (int b = 0; b < form.blocks; ++b) {
        const std::string block = form.block_name(i, b);
        Doubles active = times(parts.at(block + "linear.weight"), x, find(block + "linear.bias"));
        if (const Stored* joining = find(block + "res_connection.weight"))
            x = times(*joining, x, find(block + "res_connection.bias"));
        for (size_t k = 0; k < x.size(); ++k) x[k] += active[k] / (1 + std::exp(-active[k]));
    }
    const Stored* own = find(form.lm_head_name(i) + "weight");
    return times(own ? *own : *target_lm_head, x, find(form.lm_head_name(i) + "bias"));
}

}  // namespace aerie::test
