// Prompts that are answered mostly with their own words, and chats.
#pragma once

#include <string>
#include <vector>

#include "engine/bundled.h"
#include "io/input_file.h"

namespace aerie::test {

// The model is too small to edit or to summarise, so each prompt already begins the answer with its
// own words.
struct RepeatingPrompts {
    std::vector<std::string> edits, summaries;
};

inline RepeatingPrompts repeating_prompts() {
    const std::string text = read_text(test_data_dir() / "valid.txt", 1 << 20);
    const std::string border = "---8<---\n";
    RepeatingPrompts prompts;
    for (size_t at = 0, end; at < text.size(); at = end + border.size()) {
        end = std::min(text.find(border, at), text.size());
        if (end - at < 300) continue;
        const std::string one = text.substr(at, std::min<size_t>(end - at, 700));
        const std::string begun = " ASSISTANT: " + one.substr(0, one.size() / 3);
        if (text.substr(at, end - at).find("def ") != std::string::npos)
            prompts.edits.push_back("USER: Change a name in this. " + one + begun);
        else
            prompts.summaries.push_back("USER: Say in short: " + one + begun);
    }
    return prompts;
}

// Forty prompts: a chat, an edit of code and a summary in turn.
inline std::vector<std::string> mixed_prompts() {
    const std::vector<std::string> chats = sixty_prompts();
    const auto [edits, summaries] = repeating_prompts();
    std::vector<std::string> prompts;
    for (size_t i = 0; i < 40; ++i)
        prompts.push_back(i % 3 == 0   ? chats[i]
                          : i % 3 == 1 ? edits[i % edits.size()]
                                       : summaries[i % summaries.size()]);
    return prompts;
}

}  // namespace aerie::test
