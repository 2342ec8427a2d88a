// An EAGLE-3 head as llama.cpp's converter writes it: names, keys, order and layout are those of a
// file that it made from the bundled head.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "core/error.h"
#include "io/json.h"
#include "io/write_gguf.h"
#include "tools/write_model.h"

namespace aerie::test {

// "midlayer.mlp.up_proj.weight" -> "blk.0.ffn_up.weight".
inline std::string gguf_head_name(const std::string& name) {
    constexpr std::pair<const char*, const char*> kNames[] = {
        {"fc.weight", "fc.weight"},
        {"embed_tokens.weight", "token_embd.weight"},
        {"lm_head.weight", "output.weight"},
        {"norm.weight", "output_norm.weight"},
        {"input_norm.weight", "enc.output_norm.weight"},
        {"midlayer.hidden_norm.weight", "blk.0.attn_norm_2.weight"},
        {"midlayer.input_layernorm.weight", "blk.0.attn_norm.weight"},
        {"midlayer.post_attention_layernorm.weight", "blk.0.ffn_norm.weight"},
        {"midlayer.mlp.down_proj.weight", "blk.0.ffn_down.weight"},
        {"midlayer.mlp.gate_proj.weight", "blk.0.ffn_gate.weight"},
        {"midlayer.mlp.up_proj.weight", "blk.0.ffn_up.weight"},
        {"midlayer.self_attn.q_proj.weight", "blk.0.attn_q.weight"},
        {"midlayer.self_attn.k_proj.weight", "blk.0.attn_k.weight"},
        {"midlayer.self_attn.v_proj.weight", "blk.0.attn_v.weight"},
        {"midlayer.self_attn.o_proj.weight", "blk.0.attn_output.weight"}};
    for (const auto& [ours, theirs] : kNames)
        if (name == ours) return theirs;
    throw Error("a GGUF head has no " + name);
}

// Rows of each head in llama.cpp's order: the rows of its two halves take turns.
inline std::string rows_in_pairs(const Stored& tensor, size_t head_dim) {
    const size_t rows = size_t(tensor.shape[0]), bytes = tensor.data.size() / rows;
    std::string data;
    for (size_t row = 0; row < rows; ++row) {
        const size_t in_head = row % head_dim, half = in_head % 2, pair = in_head / 2;
        data += tensor.data.substr((row - in_head + half * head_dim / 2 + pair) * bytes, bytes);
    }
    return data;
}

inline GgufTensorText gguf_head_tensor(const Stored& tensor, DType type, size_t head_dim) {
    constexpr uint32_t kF32 = 0, kF16 = 1;
    const bool is_vector = tensor.shape.size() == 1;
    const Stored stored = tensor.as(is_vector ? DType::F32 : type);
    GgufTensorText text{.name = gguf_head_name(tensor.name)};
    text.type = stored.dtype == DType::F32 ? kF32 : kF16;
    text.dims.assign(tensor.shape.rbegin(), tensor.shape.rend());
    const bool is_rotated = tensor.name.find(".q_proj") != std::string::npos ||
                            tensor.name.find(".k_proj") != std::string::npos;
    text.data = is_rotated ? rows_in_pairs(stored, head_dim) : stored.data;
    return text;
}

// d2t holds the target's ids themselves; t2d is left out.
inline GgufTensorText gguf_head_ids(const Stored& offsets) {
    GgufTensorText text{.name = "d2t", .type = 27, .dims = {uint64_t(offsets.shape[0])}};
    for (size_t i = 0; i < size_t(offsets.shape[0]); ++i) {
        int64_t offset = 0;
        std::memcpy(&offset, &offsets.data[i * sizeof(offset)], sizeof(offset));
        text.data += little_endian(uint64_t(offset) + i, sizeof(offset));
    }
    return text;
}

// The file lacks the target's tokenizer, which such files usually have.
inline GgufWriter gguf_head(const Json& config, const std::vector<Stored>& tensors, DType type) {
    constexpr uint32_t kBool = 7, kI32 = 5, kFloat = 6;
    const auto number = [&](const char* key) { return uint32_t(config.find(key)->number()); };
    const uint32_t head_dim = number("hidden_size") / number("num_attention_heads");
    GgufWriter writer;
    writer.string("general.architecture", "eagle3");
    std::string taps;
    const Json::Array& layers = *config.find("eagle_aux_hidden_state_layer_ids")->array();
    for (const Json& layer : layers) taps += little_endian(uint64_t(layer.number()), 4);
    writer.array("eagle3.target_layers", kI32, layers.size(), taps);
    writer.u32("eagle3.target_hidden_size", number("hidden_size"));
    writer.number("eagle3.norm_before_residual", kBool, 0, 1);
    writer.number("eagle3.norm_before_fc", kBool, 0, 1);
    writer.u32("eagle3.block_count", 1);
    writer.u32("eagle3.context_length", number("max_position_embeddings"));
    writer.u32("eagle3.embedding_length", number("hidden_size"));
    writer.u32("eagle3.feed_forward_length", number("intermediate_size"));
    writer.u32("eagle3.attention.head_count", number("num_attention_heads"));
    writer.u32("eagle3.attention.head_count_kv", number("num_key_value_heads"));
    const auto real = [&](const char* key, double value) {
        writer.number(key, kFloat, std::bit_cast<uint32_t>(float(value)), 4);
    };
    real("eagle3.rope.freq_base", config.find("rope_theta")->number());
    real("eagle3.attention.layer_norm_rms_epsilon", config.find("rms_norm_eps")->number());
    for (const char* key : {"eagle3.attention.key_length", "eagle3.attention.value_length",
                            "eagle3.rope.dimension_count"})
        writer.u32(key, head_dim);
    writer.u32("eagle3.vocab_size", number("vocab_size"));
    for (const Stored& tensor : tensors)
        if (tensor.name == "d2t")
            writer.tensor(gguf_head_ids(tensor));
        else if (tensor.name != "t2d")
            writer.tensor(gguf_head_tensor(tensor, type, head_dim));
    return writer;
}

}  // namespace aerie::test
