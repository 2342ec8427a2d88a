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

// The sizes, as reports name them.
Json sizes_json(const ModelConfig& config);

// The configuration as a config.json; the class of transformers is the architecture's, or this one.
Json config_json(const ModelConfig& config);
Json config_json(const ModelConfig& config, const std::string& class_name);

}  // namespace aerie
