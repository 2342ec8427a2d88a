// The target answers prompts, several of them in each pass, by plain decoding.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/batch.h"
#include "engine/model.h"

namespace aerie::train {

struct Prompt {
    std::vector<int> tokens;
    uint64_t seed = 0;  // added to that of the plan
};

struct AnsweredPrompt {
    size_t prompt = 0;        // its number
    std::vector<int> tokens;  // the prompt's and the answer's
    size_t prompt_size = 0;   // tokens of the prompt
};

struct AnsweringPlan {
    int sequences_in_pass = 16;
    int max_tokens = 512;  // most tokens of an answer
    Sampling sampling;     // each prompt adds its own seed
    std::vector<int> eos_ids;
    std::function<bool()> cancelled;  // asked once a pass; may be empty
};

// Answers prompts 0, 1, ... in the order in which `next` supplies them, and hands over each answer
// as soon as it has ended; an answer may make `next` supply more. Returns when `next` has returned
// false and every answer has ended. A prompt without room for an answer is skipped. Throws Error.
void answer_prompts(Model& model, const AnsweringPlan& plan,
                    const std::function<bool(Prompt& prompt)>& next,
                    const std::function<void(const AnsweredPrompt&)>& on_answer);

}  // namespace aerie::train
