// --learn: heads that learn while a model is used (src/train/learner.h).
#pragma once

#include <memory>

#include "engine/model_files.h"
#include "talk/learning.h"
#include "talk/shared_model.h"

namespace aerie {

// Throws UsageError if there is no head that could learn, or no folder for it.
std::shared_ptr<Learning> start_learning(std::shared_ptr<SharedModel> model,
                                         const LoadOptions& options);

}  // namespace aerie
