// Finds models: by path, among the bundled models, in the Hugging Face cache; and a head for each.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/model_files.h"
#include "io/model_places.h"

namespace aerie {

// A model to find. Names are UTF-8.
struct WantedModel {
    std::string model;
    std::optional<std::string> head;   // unset: one beside the model
    std::optional<std::string> draft;  // a row of draft/methods.h; unset: the default for the head
    std::vector<std::filesystem::path> folders;  // folders of models, searched first
};

// The bundled model that is used if none is named.
inline constexpr const char* kDefaultModel = "smollm2";

// Finds a folder or a file, in this order: the name of a model in one of the folders or of a
// bundled model (NAME is a folder NAME or a file NAME.gguf), a path, or org/name in the Hugging
// Face cache. Throws Error, UsageError.
std::filesystem::path find_model(const std::string& name,
                                 std::span<const std::filesystem::path> folders);

// The first file of this name in the folders of models: those given, then those of bundled models.
// Empty if there is none.
std::filesystem::path find_beside_models(const std::string& file,
                                         std::span<const std::filesystem::path> folders);

// A model that find_model finds.
struct ModelAtHand {
    PlacedModel model;               // program "aerie": in one of the folders, or bundled
    std::vector<std::string> heads;  // names or paths of the heads beside it
};
// All of them: those of the folders and the bundled ones, then those of other programs.
std::vector<ModelAtHand> models_at_hand(std::span<const std::filesystem::path> folders);

// Writes model, head and draft method into the options. Throws Error, UsageError.
void locate(const WantedModel& wanted, LoadOptions& options);

// The user's default folder for measured costs and similar data. Empty: not known.
std::filesystem::path default_cache();

}  // namespace aerie
