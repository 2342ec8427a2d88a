// The target's answers to the prompts of some files, as texts to learn from.
#pragma once

#include <string>
#include <vector>

#include "text/prompt_file.h"
#include "text/tokenizer.h"
#include "train/text_file.h"
#include "train/training_run.h"

namespace aerie::train {

// Has the target answer the prompts that the file of texts lacks, and appends each conversation
// when its last turn is answered. An answer depends on its prompt alone: not on which others are
// answered beside it, nor on how often the program was stopped. Throws Error naming file and line
// of a prompt that the chat template refuses.
void answer_lines(Model& model, const Tokenizer& tokenizer, const TrainingOptions& options,
                  std::vector<PromptLine> lines, TextFile& file);

}  // namespace aerie::train
