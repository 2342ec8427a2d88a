// Counter-based noise through a table of normal quantiles: a few cycles per value.
#include "model/synthetic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "core/error.h"
#include "core/hash.h"
#include "core/parallel_for.h"

namespace aerie {

namespace {

constexpr float kDeviation = 0.02f;
constexpr int kQuantileBits = 12;  // the table stays in the first-level cache
constexpr int kPerWord = 4;        // values made of one random word

void add_dense(std::vector<TensorShape>& tensors, const ModelConfig& c, const std::string& prefix) {
    tensors.push_back({prefix + "mlp.gate_proj.weight", {c.intermediate, c.hidden}});
    tensors.push_back({prefix + "mlp.up_proj.weight", {c.intermediate, c.hidden}});
    tensors.push_back({prefix + "mlp.down_proj.weight", {c.hidden, c.intermediate}});
}

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

// Adds attention and the norm behind it, for an input of so many columns.
void add_layer(std::vector<TensorShape>& tensors, const ModelConfig& c, const std::string& prefix,
               int input) {
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

// SplitMix64's finaliser (Steele, Lea, Flood 2014): neighbours become independent words.
uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

// The point below which a standard normal value lies with this probability.
double normal_quantile(double probability) {
    double low = -9, high = 9;
    for (int i = 0; i < 60; ++i) {
        const double middle = (low + high) / 2;
        (std::erfc(-middle / std::sqrt(2.0)) / 2 < probability ? low : high) = middle;
    }
    return low;
}

}  // namespace

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
        add_layer(tensors, config, prefix, config.hidden);
        if (config.experts.in_layer(i))
            add_experts(tensors, config, prefix);
        else
            add_dense(tensors, config, prefix);
        tensors.push_back({prefix + "input_layernorm.weight", {config.hidden}});
    }
    tensors.push_back({"model.norm.weight", {config.hidden}});
    if (!config.tied_embeddings)
        tensors.push_back({"lm_head.weight", {config.vocab, config.hidden}});
    return tensors;
}

namespace {

std::vector<TensorShape> eagle3_tensors(const ModelConfig& c) {
    const Eagle3Shape& shape = *c.eagle3;
    const std::string layer = "midlayer.";
    const int64_t features = int64_t(shape.tap_count()) * shape.target_hidden;
    std::vector<TensorShape> tensors = {{"embed_tokens.weight", {c.vocab, c.hidden}},
                                        {"fc.weight", {c.hidden, features}},
                                        {"lm_head.weight", {shape.vocab, c.hidden}}};
    add_layer(tensors, c, layer, 2 * c.hidden);
    add_dense(tensors, c, layer);
    for (const char* norm : {"input_layernorm", "hidden_norm"})
        tensors.push_back({layer + norm + ".weight", {c.hidden}});
    if (shape.norms_features) tensors.push_back({"input_norm.weight", {features}});
    tensors.push_back({"norm.weight", {c.hidden}});
    for (int i = 0; shape.norms_taps && i < shape.tap_count(); ++i)
        tensors.push_back({"fc_norm." + std::to_string(i) + ".weight", {shape.target_hidden}});
    return tensors;
}

}  // namespace

std::vector<TensorShape> head_tensors(const ModelConfig& config) {
    if (config.eagle3) return eagle3_tensors(config);
    std::vector<TensorShape> tensors = {{"embed_tokens.weight", {config.vocab, config.hidden}},
                                        {"fc.weight", {config.hidden, 2 * config.hidden}},
                                        {"fc.bias", {config.hidden}}};
    add_layer(tensors, config, "layers.0.", config.hidden);
    add_dense(tensors, config, "layers.0.");
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

RandomWeights::RandomWeights(DType type, uint64_t seed) : type_(type), seed_(seed) {
    for (int i = 0; i < 1 << kQuantileBits; ++i) {
        const double probability = (i + 0.5) / (1 << kQuantileBits);
        const float value = kDeviation * float(normal_quantile(probability));
        floats_.push_back(value);
        halves_.push_back(type == DType::BF16 ? f32_to_bf16(value) : f32_to_f16(value));
    }
}

void RandomWeights::fill(const std::string& name, int64_t first, std::span<std::byte> out) const {
    if (name.ends_with("norm.weight")) {
        const float one = 1;
        const uint16_t half = type_ == DType::BF16 ? f32_to_bf16(one) : f32_to_f16(one);
        const size_t size = size_bytes(type_);
        const void* value = type_ == DType::F32 ? static_cast<const void*>(&one) : &half;
        for (size_t i = 0; i < out.size(); i += size) std::memcpy(&out[i], value, size);
    } else if (type_ == DType::F32) {
        fill_as(floats_, mix(seed_ + fnv1a(name)), first, out);
    } else {
        fill_as(halves_, mix(seed_ + fnv1a(name)), first, out);
    }
}

template <class T>
void RandomWeights::fill_as(const std::vector<T>& quantiles, uint64_t key, int64_t first,
                            std::span<std::byte> out) const {
    constexpr int64_t kGrain = 1 << 18;  // words
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
    const T* table = quantiles.data();
    const int64_t last = first + int64_t(out.size() / sizeof(T)), first_word = first / kPerWord;
    parallel_for(
        (last + kPerWord - 1) / kPerWord - first_word, kGrain, [&](int64_t begin, int64_t end) {
            for (int64_t i = first_word + begin; i < first_word + end; ++i) {
                const uint64_t word = mix(key + kGolden * uint64_t(i + 1));
                T values[kPerWord];
                for (int lane = 0; lane < kPerWord; ++lane)
                    values[lane] = table[(word >> (16 * lane)) & ((1 << kQuantileBits) - 1)];
                const int64_t from = std::max(i * kPerWord, first),
                              to = std::min((i + 1) * kPerWord, last);
                std::memcpy(&out[size_t(from - first) * sizeof(T)], values + from % kPerWord,
                            sizeof(T) * size_t(to - from));
            }
        });
}

namespace {

NamedTensor described(const std::string& name, DType type, const std::vector<int64_t>& shape) {
    return {name, type, shape, {0, checked_bytes(shape, type, name)}};
}

// The target's id for a draft id.
int64_t spread(const ModelConfig& head, int64_t id) {
    return id * head.vocab / head.eagle3->vocab;
}

int64_t offset_of(const ModelConfig& head, int64_t id) {
    return spread(head, id) - id;
}

bool is_member(const ModelConfig& head, int64_t target_id) {
    const int64_t vocab = head.eagle3->vocab;
    const int64_t id = (target_id * vocab + head.vocab - 1) / head.vocab;  // first candidate
    return id < vocab && spread(head, id) == target_id;
}

}  // namespace

std::vector<NamedTensor> published_tensors(const ModelConfig& head, DType type) {
    std::vector<NamedTensor> tensors;
    for (const TensorShape& tensor : head_tensors(head))
        if (!head.eagle3 || tensor.name != "embed_tokens.weight")
            tensors.push_back(described(tensor.name, type, tensor.shape));
    if (!head.eagle3 || head.eagle3->vocab == head.vocab) return tensors;
    tensors.push_back(described("d2t", DType::I64, {head.eagle3->vocab}));
    tensors.push_back(described("t2d", DType::Bool, {head.vocab}));
    return tensors;
}

bool fill_ids(const ModelConfig& head, const NamedTensor& tensor, int64_t first,
              std::span<std::byte> out) {
    if (tensor.name != "d2t" && tensor.name != "t2d") return false;
    const size_t size = size_bytes(tensor.dtype);
    for (size_t i = 0; i < out.size() / size; ++i) {
        const int64_t id = first + int64_t(i);
        if (tensor.name == "d2t") {
            const int64_t offset = offset_of(head, id);
            std::memcpy(&out[i * size], &offset, size);
        } else {
            out[i] = std::byte(is_member(head, id));
        }
    }
    return true;
}

Checkpoint random_head(const std::string& name, const ModelConfig& head, DType type,
                       uint64_t seed) {
    const auto fill = [head, weights = RandomWeights(type, seed)](const NamedTensor& tensor, DType,
                                                                  size_t first,
                                                                  std::span<std::byte> out) {
        if (!fill_ids(head, tensor, int64_t(first), out))
            weights.fill(tensor.name, int64_t(first), out);
    };
    return Checkpoint::generated(name, published_tensors(head, type), fill);
}

Checkpoint random_checkpoint(const std::string& name, const std::vector<TensorShape>& tensors,
                             DType type, uint64_t seed) {
    std::vector<NamedTensor> named;
    for (const TensorShape& tensor : tensors)
        named.push_back(described(tensor.name, type, tensor.shape));
    const auto fill = [weights = RandomWeights(type, seed)](const NamedTensor& tensor, DType,
                                                            size_t first,
                                                            std::span<std::byte> out) {
        weights.fill(tensor.name, int64_t(first), out);
    };
    return Checkpoint::generated(name, std::move(named), fill);
}

}  // namespace aerie
