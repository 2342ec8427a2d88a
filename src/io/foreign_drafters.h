// Drafters of kinds that others publish and that are not run here, told by name: many of their
// files look like those of an EAGLE head.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "io/checkpoint.h"
#include "io/gguf.h"

namespace aerie {

// "a DFlash drafter", by a config.json in the spellings of its authors, of DeepSpec, SpecForge,
// speculators and vLLM; nothing: the configuration is none of such a drafter.
std::optional<std::string> foreign_drafter(const Json& config);
// The same by the names of tensors, which a configuration may not tell.
std::optional<std::string> foreign_drafter(const Checkpoint& tensors);
// The same of a file of llama.cpp's.
std::optional<std::string> foreign_drafter(const Gguf& gguf);

// Whether a model has layers that predict several tokens (MTP) beside its own.
bool has_mtp_layers(const Checkpoint& tensors);
bool has_mtp_layers(const Gguf& gguf);

// Throws Error, one line that names the file and the kind, if there is a kind.
void refuse_foreign(const std::filesystem::path& path, const std::optional<std::string>& kind);

}  // namespace aerie
