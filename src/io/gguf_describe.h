// The other way round of io/gguf_config.h: a model's configuration as the metadata of a GGUF file.
#pragma once

#include <string>
#include <vector>

#include "io/gguf_metadata.h"
#include "io/gguf_names.h"
#include "io/json.h"

namespace aerie {

// Of model_type. Throws Error if GGUF has no such architecture.
GgufArchitecture architecture_of(const Json& config);

// Adds what gguf_config reads back, all but what it learns from tensors. `config` says everything,
// as config_json (model/shapes.h) does. Throws Error for what GGUF cannot say.
void describe_config(const Json& config, GgufMetadata& metadata);

// What llama.cpp does not read, or reads otherwise: one line each.
std::vector<std::string> unread_elsewhere(const Json& config);

}  // namespace aerie
