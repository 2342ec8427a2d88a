// The keys of whole numbers of a model, in GGUF and in a config.json.
#pragma once

#include <array>

namespace aerie {

// In files, the GGUF key follows the architecture's name and a dot.
struct GgufKeyRow {
    const char *gguf, *hugging_face;
};
constexpr std::array kGgufIntegers{
    GgufKeyRow{"embedding_length", "hidden_size"},
    GgufKeyRow{"block_count", "num_hidden_layers"},
    GgufKeyRow{"context_length", "max_position_embeddings"},
    GgufKeyRow{"attention.head_count", "num_attention_heads"},
    GgufKeyRow{"attention.head_count_kv", "num_key_value_heads"},
    GgufKeyRow{"attention.key_length", "head_dim"},
    GgufKeyRow{"attention.sliding_window", "sliding_window"},
    GgufKeyRow{"expert_used_count", "num_experts_per_tok"},
};

}  // namespace aerie
