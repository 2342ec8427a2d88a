// Sizes of well-known models, by name: for models of random weights.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/config.h"

namespace aerie {

std::vector<std::string> shape_names();

// Sizes given by hand; what is not set stays as it is.
struct ShapeChanges {
    std::optional<int> hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, context;
};

// The shape of this name with the changes. A name that is not known and sizes that no model can
// have are a UsageError.
ModelConfig model_shape(const std::string& name, const ShapeChanges& changes = {});

// The configuration of an EAGLE-1/2 head for this target: one of its layers.
ModelConfig head_shape(const ModelConfig& target);
// Of an EAGLE-3 head as they are trained: as wide, positions by a base of 10,000, and logits of the
// 32,000 tokens that are most frequent.
ModelConfig eagle3_head_shape(const ModelConfig& target);

// Its sizes, as reports name them.
Json sizes_json(const ModelConfig& config);

// As config.json says it.
Json config_json(const ModelConfig& config);

}  // namespace aerie
