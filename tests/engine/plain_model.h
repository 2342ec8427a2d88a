// LLaMA in doubles over tests/reference, written like the paper: the engine's models are compared
// with it. It has no cache and no passes: every position is computed from the tokens.
#pragma once

#include <cstring>

#include "model/make/random_weights.h"
#include "reference/layers.h"

namespace aerie::test {

// Random f32 tensors that are large enough for every bias and every position to matter.
inline Checkpoint lively_checkpoint(const std::vector<TensorShape>& tensors, uint64_t seed) {
    std::vector<NamedTensor> named;
    for (const TensorShape& tensor : tensors)
        named.push_back({tensor.name,
                         DType::F32,
                         tensor.shape,
                         {0, checked_bytes(tensor.shape, DType::F32, tensor.name)}});
    const auto fill = [weights = RandomWeights(DType::F32, seed)](const NamedTensor& tensor, DType,
                                                                  size_t first,
                                                                  std::span<std::byte> out) {
        weights.fill(tensor.name, int64_t(first), out);
        const bool bias = tensor.name.ends_with(".bias");
        for (size_t i = 0; !tensor.name.ends_with("norm.weight") && i < out.size(); i += 4) {
            float value = 0;
            std::memcpy(&value, &out[i], 4);
            value *= bias ? 25.0f : 8.0f;
            std::memcpy(&out[i], &value, 4);
        }
    };
    return Checkpoint::generated("lively", std::move(named), fill);
}

class PlainModel {
  public:
    PlainModel(const ModelConfig& config, const Checkpoint& checkpoint)
        : config_(config), checkpoint_(checkpoint) {}

    // Logits after each token.
    reference::Exact logits(const std::vector<int>& tokens) const {
        reference::Matrix x = embed(tokens);
        for (int i = 0; i < config_.layers; ++i)
            run_layer(x, i, "model.layers." + std::to_string(i) + ".");
        const auto normed =
            floats(reference::rms_norm(x, tensor("model.norm.weight"), config_.rms_epsilon));
        return reference::matmul(normed, tensor(config_.lm_head_name()));
    }

  private:
    using Matrix = reference::Matrix;
    using Exact = reference::Exact;

    static Matrix floats(const Exact& exact) {
        Matrix m(exact.rows, exact.cols);
        std::copy(exact.data.begin(), exact.data.end(), m.data.begin());
        return m;
    }
    Matrix tensor(const std::string& name) const {
        const NamedTensor& found = *checkpoint_.find(name);
        const bool vector = found.shape.size() == 1;
        Matrix m(vector ? 1 : int(found.shape[0]), int(found.shape.back()));
        std::memcpy(m.data.data(), checkpoint_.read(found).get(), m.data.size() * 4);
        return m;
    }
    // x W^T, plus the bias beside W if this model has one.
    Exact product(const Matrix& x, const std::string& name, bool has_bias) const {
        Exact out = reference::matmul(x, tensor(name + ".weight"));
        if (!has_bias) return out;
        const Matrix bias = tensor(name + ".bias");
        for (int r = 0; r < out.rows; ++r)
            for (int c = 0; c < out.cols; ++c) out[r][c] += double(bias[0][c]);
        return out;
    }
    static void put(Matrix& to, int column, const Exact& from) {
        for (int r = 0; r < to.rows; ++r) std::copy_n(from[r], from.cols, to[r] + column);
    }
    static void add(Matrix& to, const Exact& from) {
        for (size_t i = 0; i < to.data.size(); ++i)
            to.data[i] = float(double(to.data[i]) + from.data[i]);
    }

    Matrix embed(const std::vector<int>& tokens) const {
        const Matrix table = tensor("model.embed_tokens.weight");
        Matrix x(int(tokens.size()), config_.hidden);
        for (int r = 0; r < x.rows; ++r)
            std::copy_n(table[tokens[size_t(r)]], config_.hidden, x[r]);
        return x;
    }

    void run_layer(Matrix& x, int layer, const std::string& prefix) const {
        const double epsilon = config_.rms_epsilon;
        Matrix normed =
            floats(reference::rms_norm(x, tensor(prefix + "input_layernorm.weight"), epsilon));
        add(x, product(attend(normed, layer, prefix + "self_attn."), prefix + "self_attn.o_proj",
                       config_.attention_output_bias));
        normed = floats(
            reference::rms_norm(x, tensor(prefix + "post_attention_layernorm.weight"), epsilon));
        Matrix gate_up(x.rows, 2 * config_.intermediate);
        put(gate_up, 0, product(normed, prefix + "mlp.gate_proj", config_.mlp_bias));
        put(gate_up, config_.intermediate,
            product(normed, prefix + "mlp.up_proj", config_.mlp_bias));
        add(x, product(floats(reference::swiglu(gate_up)), prefix + "mlp.down_proj",
                       config_.mlp_bias));
    }

    Matrix attend(const Matrix& x, int layer, const std::string& prefix) const {
        const int q_cols = config_.file_attention_columns(), kv_cols = config_.file_kv_columns();
        Matrix qkv(x.rows, q_cols + 2 * kv_cols);
        put(qkv, 0, product(x, prefix + "q_proj", config_.qkv_bias));
        put(qkv, q_cols, product(x, prefix + "k_proj", config_.qkv_bias));
        put(qkv, q_cols + kv_cols, product(x, prefix + "v_proj", config_.qkv_bias));
        if (config_.qk_norm) norm_heads(qkv, prefix);
        std::vector<int> positions;
        for (int p = 0; p < x.rows; ++p) positions.push_back(p);
        qkv = floats(reference::rope(qkv, angles(x.rows), positions, shape()));
        Matrix keys(0, kv_cols), values(0, kv_cols), out(x.rows, q_cols);
        for (int p = 0; p < x.rows; ++p) {
            for (auto& [part, first] : {std::pair(&keys, q_cols), {&values, q_cols + kv_cols}}) {
                part->data.insert(part->data.end(), qkv[p] + first, qkv[p] + first + kv_cols);
                ++part->rows;
            }
            const auto row = reference::attention(qkv[p], keys, values, shape(),
                                                  shape().usual_scale(), config_.window(layer));
            std::copy(row.begin(), row.end(), out[p]);
        }
        return out;
    }
    // Normalises each head of q and of k by itself.
    void norm_heads(Matrix& qkv, const std::string& prefix) const {
        const AttentionShape heads = shape();
        const Matrix weights[] = {tensor(prefix + "q_norm.weight"),
                                  tensor(prefix + "k_norm.weight")};
        for (int r = 0; r < qkv.rows; ++r)
            for (int h = 0; h < heads.heads + heads.kv_heads; ++h) {
                Matrix one(1, heads.head_dim);
                std::copy_n(qkv[r] + h * heads.head_dim, heads.head_dim, one[0]);
                const Exact normed =
                    reference::rms_norm(one, weights[h >= heads.heads], config_.rms_epsilon);
                std::copy_n(normed[0], heads.head_dim, qkv[r] + h * heads.head_dim);
            }
    }
    // Heads of the size that the files have, without padding.
    AttentionShape shape() const {
        return {config_.attention.heads, config_.attention.kv_heads, config_.size_of_head()};
    }
    Matrix angles(int positions) const {
        const int dim = config_.size_of_head(), half = dim / 2;
        Matrix table(positions, dim);
        for (int p = 0; p < positions; ++p)
            for (int i = 0; i < half; ++i) {
                const double angle = p * config_.rope.frequency(i, dim);
                table[p][i] = float(std::cos(angle) * config_.rope.attention);
                table[p][half + i] = float(std::sin(angle) * config_.rope.attention);
            }
        return table;
    }

    ModelConfig config_;
    const Checkpoint& checkpoint_;
};

}  // namespace aerie::test
