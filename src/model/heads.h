// Draft heads as they lie on disk, whoever exported them.
#pragma once

#include "io/model_source.h"
#include "model/config.h"

namespace aerie {

// As open_model, with the names that eagle.md gives the tensors: what is known of exports that
// call them otherwise is undone. Throws Error.
ModelSource open_head(const std::filesystem::path& path);

// The head's config.json, and what the tensors say beside it.
ModelConfig head_config(const ModelSource& source);

// Whether a folder or a GGUF file says that it is an EAGLE-3 head; false where none can be read.
bool is_eagle3_head(const std::filesystem::path& path);

}  // namespace aerie
