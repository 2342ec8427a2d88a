// A conversation as turns: what was said, and what was answered.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "text/chat_template.h"

namespace aerie {

struct Dialogue {
    struct Turn {
        std::string message;
        std::optional<std::string> answer = {};  // none yet, or none that came to be
    };
    std::optional<std::string> system = {};  // what the model is told first
    std::vector<Turn> turns = {};

    // A turn that was never answered is replaced by the next.
    void ask(std::string message);
    Conversation conversation() const;
};

// The other way; `file` names it in errors. Throws Error where it is no talk of two.
Dialogue dialogue_of(const Conversation& conversation, const std::string& file);

// Drops the oldest turns until there are `limit` tokens at most, but never the last turn. Returns
// how many were dropped.
int drop_oldest(Dialogue& dialogue, int limit, const std::function<int(const Dialogue&)>& tokens);

}  // namespace aerie
