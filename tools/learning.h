// --learn: heads that learn while a model is used (src/train/learner.h).
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "engine/model_files.h"
#include "talk/learning.h"
#include "talk/shared_model.h"

namespace aerie {

// `on_note` takes lines for the user, from another thread. Throws UsageError if there is no head
// that could learn, or no folder for it.
std::shared_ptr<Learning> start_learning(std::shared_ptr<SharedModel> model,
                                         const LoadOptions& options,
                                         std::function<void(const std::string&)> on_note);

}  // namespace aerie
