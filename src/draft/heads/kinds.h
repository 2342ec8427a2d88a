// The table of kinds of draft heads and draft models, and their files from every known exporter.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "draft/heads/head.h"

namespace aerie {

// One row for each kind; the first is the kind of all heads that no other row recognises.
std::span<const DraftHead> draft_heads();

// The kind that drafts with this method by default; null: none.
const DraftHead* head_of_method(const std::string& method);

// The kinds for which `wanted` is true, for messages: "EAGLE-1/2 heads or EAGLE-3 heads".
std::string heads_where(bool (*wanted)(const DraftHead&));

const DraftHead& head_kind(const ModelSource& source);
// The same for a path; a configuration that names its kind suffices, without weights. Throws Error
// if the files cannot be opened, and for a drafter of a kind that aerie does not run, with its
// name.
const DraftHead& head_kind(const std::filesystem::path& path);

// Opens a head as open_model does, and gives its tensors the names of docs/drafting.md section 1,
// whatever names a known exporter gave them. Throws Error.
ModelSource open_head(const std::filesystem::path& path);

// The configuration of a head or a language model, completed from the tensors of a head.
HeadConfig head_config(const ModelSource& source);

}  // namespace aerie
