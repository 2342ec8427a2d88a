// The files that a head is trained on: prompts that the target is to answer, and conversations or
// plain texts as they are.
//
// A file is JSON Lines, an object a line, in any of the forms that training kits use:
//   {"turns": ["question", "next question"]}
//   {"prompt": "question"}
//   {"messages": [{"role": "user", "content": "question"}, ...]}
//   {"conversations": [{"from": "human", "value": "question"}, ...]}
//   {"text": "a text without roles"}
// "id" and "kind" are strings and may be absent. A file whose name ends in .txt is one plain text,
// in which lines "---8<---" divide documents.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/json.h"

namespace aerie::train {

struct TrainingLine {
    std::string id;    // "p12"; without one, the file's name and the line
    std::string kind;  // such as "code"; may be empty
    // Objects with "role" (system, user, assistant) and "content"; empty for a plain text.
    Json::Array messages;
    std::string text;
};

// Throws Error naming file and line.
std::vector<TrainingLine> read_training_file(const std::filesystem::path& path);

}  // namespace aerie::train
