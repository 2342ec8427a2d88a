// Draft heads and draft models on disk, in the files of every known exporter.
#pragma once

#include "io/model_source.h"
#include "model/config.h"

namespace aerie {

enum class HeadKind { none, eagle, eagle3, medusa, hydra, language_model };

// Recognises an EAGLE-3 head by its configuration, and Medusa heads, Hydra heads and language
// models by their tensors; all else is an EAGLE-1/2 head.
HeadKind head_kind(const ModelSource& source);
// The same for a path; an EAGLE-3 head is recognised even without its weights. Throws Error if the
// files cannot be opened, and for a drafter of a kind that aerie does not run, with its name.
HeadKind head_kind(const std::filesystem::path& path);

// Opens a head as open_model does, and gives its tensors the names of docs/drafting.md section 1,
// whatever names a known exporter gave them. Throws Error.
ModelSource open_head(const std::filesystem::path& path);

// The configuration of a head or a language model, completed from the tensors of a head.
ModelConfig head_config(const ModelSource& source);

}  // namespace aerie
