// What drafts for a target, as it lies on disk, whoever exported it.
#pragma once

#include "io/model_source.h"
#include "model/config.h"

namespace aerie {

enum class HeadKind { none, eagle, eagle3, medusa, hydra, language_model };

// An EAGLE-3 head by its configuration, Medusa and Hydra heads and a whole language model by their
// tensors, else an EAGLE-1/2 head.
HeadKind head_kind(const ModelSource& source);
// The same of files; an EAGLE-3 head is seen without its weights. Throws Error for what cannot be
// opened, and for a drafter of a kind that is not run, by its name.
HeadKind head_kind(const std::filesystem::path& path);

// As open_model, with the names that eagle.md gives a head's tensors: what is known of exports that
// call them otherwise is undone. Throws Error.
ModelSource open_head(const std::filesystem::path& path);

// The config.json of a head or a language model, and what a head's tensors say beside it.
ModelConfig head_config(const ModelSource& source);

}  // namespace aerie
