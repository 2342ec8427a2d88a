// Checkpoints that other programs quantised, told by the name of the method: their tensors would
// only seem to be missing.
#pragma once

#include <optional>
#include <string>

#include "io/model_folder.h"

namespace aerie {

// "AWQ": by a config.json, or by the files that older tools put beside it; nothing: the weights
// are as they were trained.
std::optional<std::string> foreign_quantisation(const Json& config);
std::optional<std::string> foreign_quantisation(const std::filesystem::path& folder);

}  // namespace aerie
