// Files of prompts to answer, and of conversations or plain texts to learn from.
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

namespace aerie {

struct PromptLine {
    // The line's "id", or the file's name and the line's number, and behind it a hash of the line:
    // a line that was changed is another one.
    std::string id;
    Json given_id;      // the line's "id", else its number in the file
    std::string hash;   // a hash of the line: 16 hexadecimal digits
    std::string kind;   // such as "code"; may be empty
    std::string place;  // for messages: file and line
    // Objects with "role" (system, user, assistant) and "content"; empty for a plain text.
    Json::Array messages;
    std::string text;

    bool asks() const;  // whether there is a message of the user
};

// Throws Error naming file and line.
std::vector<PromptLine> read_prompt_file(const std::filesystem::path& path);

}  // namespace aerie
