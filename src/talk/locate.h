// Where models are found: a path, a bundled model, the Hugging Face cache; and what drafts for one.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/model_files.h"

namespace aerie {

// A model by name. Names are UTF-8.
struct WantedModel {
    std::string model;
    std::optional<std::string> head;   // unset: what lies beside the model
    std::optional<std::string> draft;  // a row of draft/methods.h; unset: what suits the head
    std::vector<std::filesystem::path> folders;  // of models, looked through before all others
};

// The bundled model that is taken where none is named.
inline constexpr const char* kDefaultModel = "smollm2";

// A folder or a file: by the name of a model in one of the folders or a bundled one (NAME is a folder
// NAME or a file NAME.gguf), by its path, or by org/name in the Hugging Face cache, in this order.
// Throws Error, UsageError.
std::filesystem::path find_model(const std::string& name,
                                 std::span<const std::filesystem::path> folders);

// Into the options: model, head and how to draft. Throws Error, UsageError.
void locate(const WantedModel& wanted, LoadOptions& options);

// Where measured costs and the like are kept for this user, where nothing else is asked for. Empty:
// not known.
std::filesystem::path default_cache();

}  // namespace aerie
