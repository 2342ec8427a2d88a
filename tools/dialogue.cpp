#include "dialogue.h"

#include "core/error.h"

namespace aerie {

namespace {

[[noreturn]] void refuse_message(const std::string& file, size_t i, const std::string& why) {
    throw Error(file + ": message " + std::to_string(i + 1) + " " + why);
}

const std::string& text_of(const Json& message, const char* key, const std::string& file,
                           size_t i) {
    const Json* value = message.object() ? message.find(key) : nullptr;
    if (!value || !value->string())
        refuse_message(file, i, "has no text as its " + std::string(key));
    return *value->string();
}

}  // namespace

void Dialogue::ask(std::string message) {
    if (!turns.empty() && !turns.back().answer) turns.pop_back();
    turns.push_back({std::move(message), {}});
}

Conversation Dialogue::conversation() const {
    Conversation all;
    if (system) all.add("system", *system);
    for (const Turn& turn : turns) {
        all.add("user", turn.message);
        if (turn.answer) all.add("assistant", *turn.answer);
    }
    return all;
}

Dialogue dialogue_of(const Conversation& conversation, const std::string& file) {
    if (!conversation.tools.is_null() || !conversation.documents.is_null())
        throw Error(file + ": has tools or documents, of which a chat knows nothing");
    Dialogue dialogue;
    const Json::Array& messages = *conversation.messages.array();
    for (size_t i = 0; i < messages.size(); ++i) {
        const std::string& role = text_of(messages[i], "role", file, i);
        const std::string& content = text_of(messages[i], "content", file, i);
        const bool waits = !dialogue.turns.empty() && !dialogue.turns.back().answer;
        if (role == "system" && i == 0)
            dialogue.system = content;
        else if (role == "user" && !waits)
            dialogue.turns.push_back({content, {}});
        else if (role == "assistant" && waits)
            dialogue.turns.back().answer = content;
        else
            refuse_message(file, i, "is not of the user and the assistant in turns");
    }
    return dialogue;
}

int drop_oldest(Dialogue& dialogue, int limit, const std::function<int(const Dialogue&)>& tokens) {
    int dropped = 0;
    while (dialogue.turns.size() > 1 && tokens(dialogue) > limit) {
        dialogue.turns.erase(dialogue.turns.begin());
        ++dropped;
    }
    return dropped;
}

}  // namespace aerie
