// The configuration in a model's JSON files, checked and in the runtime's own terms.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "io/model_source.h"
#include "model/expert_config.h"
#include "model/rope.h"

namespace aerie {

class Fields;

struct ModelConfig {
    std::string architecture;  // "llama"
    int hidden = 0;
    int intermediate = 0;
    int layers = 0;
    int vocab = 0;
    int context = 0;                  // max_position_embeddings
    bool context_is_assumed = false;  // the files do not give it
    AttentionShape attention;
    // Elements of a head in the files, if `attention` has padded heads (model/padded_heads.h); 0:
    // heads are not padded.
    int file_head_dim = 0;
    float rms_epsilon = 1e-6f;
    Activation activation = Activation::silu;  // the FFN's
    Rope rope;
    bool tied_embeddings = false;
    bool qkv_bias = false, qk_norm = false;
    bool attention_output_bias = false, mlp_bias = false;
    std::vector<int> windows;  // per layer, as in Attention; empty: no layer has one
    ExpertConfig experts;      // for the layers that have some
    std::vector<int> eos_ids;  // from config.json

    // The tensor that holds the matrix of the LM head.
    const char* lm_head_name() const {
        return tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight";
    }
    int qkv_columns() const {
        return (attention.heads + 2 * attention.kv_heads) * attention.head_dim;
    }
    int attention_columns() const { return attention.heads * attention.head_dim; }
    int kv_columns() const { return attention.kv_heads * attention.head_dim; }
    // The same in the files: rows of q_proj and columns of o_proj, rows of k_proj and v_proj.
    int size_of_head() const { return file_head_dim > 0 ? file_head_dim : attention.head_dim; }
    int file_attention_columns() const { return attention.heads * size_of_head(); }
    int file_kv_columns() const { return attention.kv_heads * size_of_head(); }
    int window(int layer) const { return windows.empty() ? 0 : windows[size_t(layer)]; }
};

// Limits that a backend needs for passes of up to `rows` rows over `slots` KV slots.
Limits pass_limits(const ModelConfig& config, int rows, int slots);

// The class of transformers for a model_type: "LlamaForCausalLM".
const char* class_name(const std::string& model_type);

// Parses a target's config.json. `source` names the file in errors. Throws Error for anything that
// is missing, out of range, contradictory or not implemented.
ModelConfig parse_model_config(const Json& json, const std::string& source);

// The fields of a head's only decoder layer: `all`, or the member that speculators puts them in.
Fields layer_fields(const Fields& all);
// Parses these fields, with the defaults of docs/drafting.md section 1. The architecture stays
// empty.
ModelConfig parse_layer_config(const Fields& layer);

// generation_config.json, or the same of a GGUF file.
struct GenerationConfig {
    std::vector<int> eos_ids;
    std::optional<bool> do_sample;  // false: the likeliest token, whatever the values below
    std::optional<double> temperature, top_p, repetition_penalty;
    std::optional<int> top_k;
};
GenerationConfig parse_generation_config(const Json& json, const std::string& source);

// The same for the files of an opened model.
ModelConfig target_config(const ModelSource& source);
GenerationConfig generation_config(const ModelSource& source);

}  // namespace aerie
