// A conversation as turns of messages and answers.
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
        std::optional<std::string> answer = {};  // nullopt: not answered yet, or stopped too early
    };
    std::optional<std::string> system = {};  // the system message
    std::vector<Turn> turns = {};

    // A turn that was never answered is replaced by the next one.
    void ask(std::string message);
    Conversation conversation() const;
};

// The reverse; `file` names it in errors. Throws Error if user and assistant do not alternate.
Dialogue dialogue_of(const Conversation& conversation, const std::string& file);

// Drops the oldest turns until there are at most `limit` tokens, but never the last turn. Returns
// how many were dropped.
int drop_oldest(Dialogue& dialogue, int limit, const std::function<int(const Dialogue&)>& tokens);

}  // namespace aerie
