// Sizes of well-known models by name, for models with random weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/config.h"

namespace aerie {

std::vector<std::string> shape_names();

// Sizes that replace those of a shape; unset ones stay as they are.
struct ShapeChanges {
    std::optional<int> hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, context;
};

// The shape of this name with the changes. An unknown name, or sizes that no model can have, throw
// UsageError.
ModelConfig model_shape(const std::string& name, const ShapeChanges& changes = {});

// The configuration of an EAGLE-1/2 head for this target: one layer like the target's.
ModelConfig head_shape(const ModelConfig& target);
// The configuration of an EAGLE-3 head as they are commonly trained: as wide as the target, RoPE
// base 10,000, and logits of the 32,000 most frequent tokens.
ModelConfig eagle3_head_shape(const ModelConfig& target);

// The sizes, as reports name them.
Json sizes_json(const ModelConfig& config);

// The configuration as a config.json.
Json config_json(const ModelConfig& config);

}  // namespace aerie
