// The lists of tensors, which loading, planning, export and random weights read, and sums over
// them.
#include "model/tensors.h"

#include <algorithm>
#include <set>

#include "core/error.h"

namespace aerie {

namespace {

void add_experts(std::vector<TensorShape>& tensors, const ModelConfig& c,
                 const std::string& prefix) {
    const ExpertConfig& experts = c.experts;
    const ExpertNames& names = *experts.names;
    tensors.push_back({prefix + names.router, {experts.count, c.hidden}});
    tensors.back().is_router = true;
    const TensorShape of_one[] = {{names.gate, {experts.intermediate, c.hidden}},
                                  {names.up, {experts.intermediate, c.hidden}},
                                  {names.down, {c.hidden, experts.intermediate}}};
    const std::string before = prefix + names.experts;
    for (int e = 0; e < experts.count; ++e)
        for (const TensorShape& matrix : of_one)
            tensors.push_back({before + std::to_string(e) + "." + matrix.name, matrix.shape,
                               before + matrix.name, experts.count});
}

void add_biases(std::vector<TensorShape>& tensors, const ModelConfig& c,
                const std::string& prefix) {
    if (c.qkv_bias) {
        tensors.push_back({prefix + "self_attn.q_proj.bias", {c.file_attention_columns()}});
        for (const char* kv : {"k", "v"})
            tensors.push_back({prefix + "self_attn." + kv + "_proj.bias", {c.file_kv_columns()}});
    }
    if (c.attention_output_bias) tensors.push_back({prefix + "self_attn.o_proj.bias", {c.hidden}});
    if (!c.mlp_bias) return;
    for (const char* part : {"gate", "up"})
        tensors.push_back({prefix + "mlp." + part + "_proj.bias", {c.intermediate}});
    tensors.push_back({prefix + "mlp.down_proj.bias", {c.hidden}});
}

}  // namespace

void add_attention(std::vector<TensorShape>& tensors, const ModelConfig& c,
                   const std::string& prefix, int input) {
    const std::vector<TensorShape> layer = {
        {"self_attn.q_proj.weight", {c.file_attention_columns(), input}},
        {"self_attn.k_proj.weight", {c.file_kv_columns(), input}},
        {"self_attn.v_proj.weight", {c.file_kv_columns(), input}},
        {"self_attn.o_proj.weight", {c.hidden, c.file_attention_columns()}},
        {"post_attention_layernorm.weight", {c.hidden}}};
    for (const TensorShape& tensor : layer) tensors.push_back({prefix + tensor.name, tensor.shape});
    if (c.qk_norm)
        for (const char* qk : {"q", "k"})
            tensors.push_back({prefix + "self_attn." + qk + "_norm.weight", {c.size_of_head()}});
    add_biases(tensors, c, prefix);
}

void add_ffn(std::vector<TensorShape>& tensors, const ModelConfig& c, const std::string& prefix) {
    tensors.push_back({prefix + "mlp.gate_proj.weight", {c.intermediate, c.hidden}});
    tensors.push_back({prefix + "mlp.up_proj.weight", {c.intermediate, c.hidden}});
    tensors.push_back({prefix + "mlp.down_proj.weight", {c.hidden, c.intermediate}});
}

int64_t TensorShape::elements() const {
    int64_t count = 1;
    for (int64_t dim : shape) count *= dim;
    return count;
}

std::vector<TensorShape> target_tensors(const ModelConfig& config) {
    std::vector<TensorShape> tensors = {
        {"model.embed_tokens.weight", {config.vocab, config.hidden}}};
    for (int i = 0; i < config.layers; ++i) {
        const std::string prefix = "model.layers." + std::to_string(i) + ".";
        add_attention(tensors, config, prefix, config.hidden);
        if (config.experts.in_layer(i))
            add_experts(tensors, config, prefix);
        else
            add_ffn(tensors, config, prefix);
        tensors.push_back({prefix + "input_layernorm.weight", {config.hidden}});
    }
    tensors.push_back({"model.norm.weight", {config.hidden}});
    if (!config.tied_embeddings)
        tensors.push_back({"lm_head.weight", {config.vocab, config.hidden}});
    return tensors;
}

void refuse_other_biases(const ModelConfig& config, const Checkpoint& checkpoint) {
    std::set<std::string> known;
    for (const TensorShape& tensor : target_tensors(config)) known.insert(tensor.name);
    for (const auto& [name, tensor] : checkpoint.tensors())
        if (name.ends_with(".bias") && !known.contains(name))
            throw Error(checkpoint.folder().string() + ": '" + name +
                        "' is there, but the configuration asks for no such bias");
}

namespace {

// The tensor of a checkpoint for one that is wanted.
struct Found {
    const NamedTensor* tensor = nullptr;  // or the stack of all experts
    size_t parts = 1;                     // matrices in that stack

    size_t bytes() const { return tensor->data.size_bytes / parts; }

    bool is_matrix() const {
        return tensor->shape.size() >= 2 &&
               (is_float(tensor->dtype) || is_quantised(tensor->dtype));
    }
};

Found find(const Checkpoint& checkpoint, const TensorShape& wanted) {
    if (const NamedTensor* tensor = checkpoint.find(wanted.name)) return {tensor};
    const NamedTensor* all = wanted.stack.empty() ? nullptr : checkpoint.find(wanted.stack);
    return {all, size_t(std::max(wanted.in_stack, 1))};
}

}  // namespace

WeightTypes matrix_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors,
                         std::optional<DType> as) {
    WeightTypes types;
    for (const TensorShape& wanted : tensors) {
        const Found found = find(checkpoint, wanted);
        if (!found.tensor || !found.is_matrix()) continue;
        const std::vector<int64_t>& shape = found.tensor->shape;
        const int64_t cols = shape.back(), rows = shape[shape.size() - 2];
        const DType dtype = found.tensor->dtype;
        const DType stored = wanted.is_router ? router_type(dtype) : stored_type(*found.tensor, as);
        types[stored] += weight_bytes(checkpoint.describe(*found.tensor), rows, cols, stored);
    }
    return types;
}

size_t vector_bytes(const Checkpoint& checkpoint, const std::vector<TensorShape>& tensors) {
    size_t total = 0;
    for (const TensorShape& wanted : tensors)
        if (const Found found = find(checkpoint, wanted); found.tensor && !found.is_matrix())
            total += size_bytes(DType::F32, elements_in(found.tensor->dtype, found.bytes()));
    return total;
}

size_t sum(const WeightTypes& types) {
    size_t total = 0;
    for (const auto& [type, bytes] : types) total += bytes;
    return total;
}

}  // namespace aerie
