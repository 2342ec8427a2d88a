// Recognises published kinds of drafters that aerie does not run: many of their files look like
// those of an EAGLE head.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "io/checkpoint.h"
#include "io/gguf/gguf.h"

namespace aerie {

// The kind, such as "a DFlash drafter", by a config.json in the spellings of its authors, of
// DeepSpec, SpecForge, speculators and vLLM; nullopt: it is no such drafter.
std::optional<std::string> foreign_drafter(const Json& config);
// The same by the names of tensors, for kinds that the configuration does not show.
std::optional<std::string> foreign_drafter(const Checkpoint& tensors);
// The same for a file of llama.cpp.
std::optional<std::string> foreign_drafter(const Gguf& gguf);

// Whether a model has layers for multi-token prediction (MTP) beside its own.
bool has_mtp_layers(const Checkpoint& tensors);
bool has_mtp_layers(const Gguf& gguf);

// Throws Error, one line that names the file and the kind, if there is a kind.
void refuse_foreign(const std::filesystem::path& path, const std::optional<std::string>& kind);

}  // namespace aerie
