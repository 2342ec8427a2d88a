// The README.md of a trained head: what it is for, how it was made, how well it drafts.
#pragma once

#include <string>

#include "train/training_run.h"

namespace aerie::train {

// `head` and `model` name the folders.
std::string model_card(const std::string& head, const std::string& model,
                       const TrainingOptions& options, const TrainingReport& report);

}  // namespace aerie::train
