#include "text/prompt_file.h"

#include <algorithm>
#include <cstdio>
#include <iostream>

#include "core/error.h"
#include "core/hash.h"
#include "io/input_file.h"
#include "text/documents.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMaxBytes = size_t(1) << 30;

// The one name of a role, for all spellings.
std::string role_of(const std::string& name, const std::string& place) {
    if (name == "user" || name == "human") return "user";
    if (name == "assistant" || name == "gpt" || name == "model") return "assistant";
    if (name == "system" || name == "developer") return "system";
    throw Error(place + ": a message from \"" + name +
                "\"; known are system, user (human) and assistant (gpt)");
}

Json message(const std::string& role, const std::string& content) {
    Json made;
    made.set("role", role);
    made.set("content", content);
    return made;
}

const std::string& text_of(const Json& object, const char* key, const std::string& place) {
    const Json* member = object.find(key);
    if (!member || !member->string()) throw Error(place + ": \"" + key + "\" must be a string");
    return *member->string();
}

const Json::Array& list_of(const Json& member, const char* key, const std::string& place) {
    if (!member.array() || member.array()->empty())
        throw Error(place + ": \"" + key + "\" must be a list that is not empty");
    return *member.array();
}

// The text of a message: a string, or a list of parts such as {"type": "text", "text": "..."}.
std::string content_of(const Json& entry, const char* key, const std::string& place) {
    const Json* member = entry.find(key);
    if (!member || !member->array()) return text_of(entry, key, place);
    std::string text;
    for (const Json& part : *member->array()) {
        const Json* type = part.object() ? part.find("type") : nullptr;
        if (!type || !type->string() || *type->string() != "text")
            throw Error(place + ": \"" + key + "\" has a part that is no text");
        text += text_of(part, "text", place);
    }
    return text;
}

Json::Array messages_of(const Json::Array& list, const char* role, const char* content,
                        const std::string& place) {
    Json::Array messages;
    for (const Json& entry : list) {
        if (!entry.object()) throw Error(place + ": a message must be an object");
        messages.push_back(message(role_of(text_of(entry, role, place), place),
                                   content_of(entry, content, place)));
    }
    return messages;
}

PromptLine parse_line(const std::string& text, const std::string& place) {
    const Json json = Json::parse(text, place);
    if (!json.object()) throw Error(place + ": not an object");
    PromptLine line;
    const auto label = [&](const char* key, std::string& to) {
        const Json* value = json.find(key);
        if (value && !value->is_null()) to = value->string() ? *value->string() : value->dump();
    };
    label("id", line.id);
    if (!line.id.empty()) line.given_id = *json.find("id");
    label("kind", line.kind);
    line.place = place;
    if (const Json* turns = json.find("turns")) {
        for (const Json& turn : list_of(*turns, "turns", place)) {
            if (!turn.string()) throw Error(place + ": \"turns\" must be strings");
            line.messages.push_back(message("user", *turn.string()));
        }
    } else if (json.find("prompt")) {
        line.messages.push_back(message("user", text_of(json, "prompt", place)));
    } else if (const Json* messages = json.find("messages")) {
        line.messages =
            messages_of(list_of(*messages, "messages", place), "role", "content", place);
    } else if (const Json* messages = json.find("conversations")) {
        line.messages =
            messages_of(list_of(*messages, "conversations", place), "from", "value", place);
    } else if (json.find("text")) {
        line.text = text_of(json, "text", place);
    } else {
        throw Error(place +
                    ": none of \"turns\", \"prompt\", \"messages\", \"conversations\", \"text\"");
    }
    return line;
}

// Calls `use` with each line without its end, and the line's number.
template <class Use>
void for_each_line(std::string_view text, const Use& use) {
    int number = 0;
    while (!text.empty()) {
        const size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
        use(line, ++number);
    }
}

std::string text_of_stdin() {
    std::string text;
    for (char c = 0; text.size() <= kMaxBytes && std::cin.get(c);) text += c;
    if (text.size() > kMaxBytes) throw Error("stdin has more than 1 GiB");
    return text;
}

// Eight digits that tell texts apart.
std::string digest(std::string_view text) {
    char digits[9];
    std::snprintf(digits, sizeof(digits), "%08x", unsigned(fnv1a(text) >> 32 ^ fnv1a(text)));
    return digits;
}

std::vector<PromptLine> documents_of(std::string_view text, const std::string& name) {
    std::vector<PromptLine> documents;
    for (const std::string_view document : split_documents(text)) {
        if (document.empty()) continue;
        PromptLine line;
        const int number = int(documents.size()) + 1;
        line.place = name + ": document " + std::to_string(number);
        line.id = name + ":" + std::to_string(number) + "@" + digest(document);
        line.given_id = number;
        line.hash = hex_digits(fnv1a(document));
        line.text = document;
        documents.push_back(std::move(line));
    }
    return documents;
}

}  // namespace

bool PromptLine::asks() const {
    return std::any_of(messages.begin(), messages.end(), [](const Json& message) {
        return *message.find("role")->string() == "user";
    });
}

std::vector<PromptLine> read_prompt_file(const fs::path& path) {
    const bool is_stdin = path == "-";
    const std::string text = is_stdin ? text_of_stdin() : read_text(path, kMaxBytes);
    const std::string name = is_stdin ? "stdin" : path.filename().string();
    std::vector<PromptLine> lines;
    if (path.extension() == ".txt")
        lines = documents_of(text, name);
    else
        for_each_line(text, [&](std::string_view line, int number) {
            if (line.find_first_not_of(" \t") == std::string_view::npos) return;
            const std::string place =
                (is_stdin ? name : path.string()) + ": line " + std::to_string(number);
            if (line.front() == '[')
                throw Error(place + ": this is a JSON list; the file must have one object a line");
            lines.push_back(parse_line(std::string(line), place));
            PromptLine& made = lines.back();
            if (made.id.empty()) made.id = name + ":" + std::to_string(number);
            if (made.given_id.is_null()) made.given_id = number;
            made.id += "@" + digest(line);
            made.hash = hex_digits(fnv1a(line));
        });
    if (lines.empty())
        throw Error((is_stdin ? name : path.string()) + ": there is no prompt in it");
    return lines;
}

}  // namespace aerie
