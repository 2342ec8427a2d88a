// Recognises checkpoints that other programs quantised. Without this their tensors would be
// reported as missing.
#pragma once

#include <optional>
#include <string>

#include "io/model_folder.h"

namespace aerie {

// The method, such as "AWQ", by a config.json, or by the files that older tools put beside it;
// nullopt: the weights are not quantised.
std::optional<std::string> foreign_quantisation(const Json& config);
std::optional<std::string> foreign_quantisation(const std::filesystem::path& folder);

}  // namespace aerie
