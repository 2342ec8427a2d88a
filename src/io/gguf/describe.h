// The reverse of io/gguf/config.h: a model's configuration as the metadata of a GGUF file.
#pragma once

#include <string>
#include <vector>

#include "io/gguf/metadata.h"
#include "io/gguf/names.h"
#include "io/json.h"

namespace aerie {

// The architecture for model_type. Throws Error if GGUF has none.
GgufArchitecture architecture_of(const Json& config);

// Adds all keys that gguf_config reads back; what that learns from tensors is left out. `config`
// must be complete, as config_json (model/make/shapes.h) is. Throws Error for what GGUF cannot
// express.
void describe_config(const Json& config, GgufMetadata& metadata);

// One line for each property that llama.cpp does not read, or reads differently.
std::vector<std::string> unread_elsewhere(const Json& config);

}  // namespace aerie
