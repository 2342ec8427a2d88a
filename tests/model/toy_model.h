// Random models of any shape, written as Hugging Face folders for tests.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/json.h"
#include "model/config.h"

namespace aerie::test {

struct ToyTensor {
    std::string name;
    std::vector<int64_t> shape;
};

inline std::vector<ToyTensor> layer_tensors(const ModelConfig& c, const std::string& prefix,
                                            bool attention_norm) {
    std::vector<ToyTensor> tensors = {
        {prefix + "self_attn.q_proj.weight", {c.attention_columns(), c.hidden}},
        {prefix + "self_attn.k_proj.weight", {c.kv_columns(), c.hidden}},
        {prefix + "self_attn.v_proj.weight", {c.kv_columns(), c.hidden}},
        {prefix + "self_attn.o_proj.weight", {c.hidden, c.attention_columns()}},
        {prefix + "mlp.gate_proj.weight", {c.intermediate, c.hidden}},
        {prefix + "mlp.up_proj.weight", {c.intermediate, c.hidden}},
        {prefix + "mlp.down_proj.weight", {c.hidden, c.intermediate}},
        {prefix + "post_attention_layernorm.weight", {c.hidden}}};
    if (attention_norm) tensors.push_back({prefix + "input_layernorm.weight", {c.hidden}});
    return tensors;
}

inline std::vector<ToyTensor> target_tensors(const ModelConfig& c) {
    std::vector<ToyTensor> tensors = {{"model.embed_tokens.weight", {c.vocab, c.hidden}},
                                      {"model.norm.weight", {c.hidden}}};
    for (int i = 0; i < c.layers; ++i)
        for (const ToyTensor& t : layer_tensors(c, "model.layers." + std::to_string(i) + ".", true))
            tensors.push_back(t);
    if (!c.tied_embeddings) tensors.push_back({"lm_head.weight", {c.vocab, c.hidden}});
    return tensors;
}

inline std::vector<ToyTensor> head_tensors(const ModelConfig& c) {
    std::vector<ToyTensor> tensors = layer_tensors(c, "layers.0.", false);
    tensors.push_back({"embed_tokens.weight", {c.vocab, c.hidden}});
    tensors.push_back({"fc.weight", {c.hidden, 2 * c.hidden}});
    tensors.push_back({"fc.bias", {c.hidden}});
    return tensors;
}

inline std::string config_json(const ModelConfig& c) {
    return Json(Json::Object{{"model_type", "llama"},
                             {"hidden_size", c.hidden},
                             {"intermediate_size", c.intermediate},
                             {"num_hidden_layers", c.layers},
                             {"num_attention_heads", c.attention.heads},
                             {"num_key_value_heads", c.attention.kv_heads},
                             {"head_dim", c.attention.head_dim},
                             {"vocab_size", c.vocab},
                             {"max_position_embeddings", c.context},
                             {"tie_word_embeddings", c.tied_embeddings}})
        .dump();
}

// Writes model.safetensors with random values, row by row: memory stays small at any size. Norm
// weights are near 1, all others have the given standard deviation.
inline void write_random_safetensors(const std::filesystem::path& file,
                                     const std::vector<ToyTensor>& tensors, DType dtype,
                                     float deviation, unsigned seed) {
    Json header;
    size_t offset = 0;
    for (const ToyTensor& tensor : tensors) {
        size_t count = 1;
        for (int64_t dim : tensor.shape) count *= size_t(dim);
        const size_t end = offset + count * size_bytes(dtype);
        header.set(tensor.name,
                   Json::Object{{"dtype", dtype == DType::F32 ? "F32" : "F16"},
                                {"shape", Json::Array(tensor.shape.begin(), tensor.shape.end())},
                                {"data_offsets", Json::Array{uint64_t(offset), uint64_t(end)}}});
        offset = end;
    }
    const std::string text = header.dump();
    std::ofstream out(file, std::ios::binary);
    const uint64_t length = text.size();
    out.write(reinterpret_cast<const char*>(&length), 8);
    out << text;
    std::minstd_rand random(seed);
    for (const ToyTensor& tensor : tensors) {
        const bool norm = tensor.name.find("norm") != std::string::npos;
        const int64_t cols = tensor.shape.back();
        std::vector<float> row(static_cast<size_t>(cols));
        std::vector<uint16_t> halves(row.size());
        for (int64_t r = 0; r < (tensor.shape.size() == 2 ? tensor.shape[0] : 1); ++r) {
            for (size_t i = 0; i < row.size(); ++i) {
                // Uniform with this deviation; the shape of the distribution does not matter.
                const float noise = float(int(random() % 20001) - 10000) * 1.732e-4f;
                row[i] = norm ? 1 + 0.1f * noise : deviation * noise;
                halves[i] = f32_to_f16(row[i]);
            }
            if (dtype == DType::F32)
                out.write(reinterpret_cast<const char*>(row.data()), long(4 * row.size()));
            else
                out.write(reinterpret_cast<const char*>(halves.data()), long(2 * row.size()));
        }
    }
    if (!out.flush()) throw Error(file.string() + ": could not be written");
}

inline void write_text(const std::filesystem::path& file, const std::string& text) {
    std::ofstream out(file, std::ios::binary);
    out << text;
    if (!out.flush()) throw Error(file.string() + ": could not be written");
}

// Writes config.json and model.safetensors of a target to `folder`, and of its head to
// folder-eagle.
inline void write_toy_model(const std::filesystem::path& folder, const ModelConfig& config,
                            DType dtype, float deviation, unsigned seed) {
    const std::filesystem::path head = folder.string() + "-eagle";
    for (const auto& path : {folder, head}) std::filesystem::create_directories(path);
    write_text(folder / "config.json", config_json(config));
    write_random_safetensors(folder / "model.safetensors", test::target_tensors(config), dtype,
                             deviation, seed);
    ModelConfig one_layer = config;
    one_layer.layers = 1;
    write_text(head / "config.json", config_json(one_layer));
    write_random_safetensors(head / "model.safetensors", test::head_tensors(config), dtype,
                             deviation, seed + 1);
}

}  // namespace aerie::test
