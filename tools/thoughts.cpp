#include "thoughts.h"

#include <algorithm>
#include <utility>

namespace aerie {

namespace {

constexpr std::string_view kBegin = "<think>", kEnd = "</think>", kSpaces = " \t\r\n";

// Length of the longest beginning of the tag with which the text ends.
size_t begun(std::string_view text, std::string_view tag) {
    size_t length = std::min(text.size(), tag.size() - 1);
    while (!text.ends_with(tag.substr(0, length))) --length;
    return length;
}

}  // namespace

Thoughts::Thoughts(std::string_view prompt) {
    const size_t last = prompt.find_last_not_of(kSpaces);
    is_thinking_ = last != prompt.npos && prompt.substr(0, last + 1).ends_with(kBegin);
}

std::vector<Thoughts::Part> Thoughts::put(std::string_view text) {
    held_ += text;
    std::vector<Part> parts;
    const auto take = [&](size_t length, bool is_thought) {
        if (length > 0) parts.push_back({held_.substr(0, length), is_thought});
        held_.erase(0, length);
    };
    for (;;) {
        const std::string_view tag = is_thinking_ ? kEnd : kBegin;
        const size_t place = held_.find(tag);
        if (place == held_.npos) {
            take(held_.size() - begun(held_, tag), is_thinking_);
            return parts;
        }
        take(is_thinking_ ? place + tag.size() : place, is_thinking_);
        is_thinking_ = !is_thinking_;
    }
}

std::vector<Thoughts::Part> Thoughts::end() {
    if (held_.empty()) return {};
    return {{std::exchange(held_, {}), is_thinking_}};
}

std::vector<Thoughts::Part> FoldedThoughts::without(const std::vector<Thoughts::Part>& parts) {
    std::vector<Thoughts::Part> rest;
    for (const Thoughts::Part& part : parts) {
        is_thinking_ = part.is_thought;
        if (part.is_thought) drops_blanks_ = true;
        const size_t first = drops_blanks_ ? part.text.find_first_not_of(kSpaces) : 0;
        if (part.is_thought || first == part.text.npos) continue;
        drops_blanks_ = false;
        rest.push_back({part.text.substr(first), false});
    }
    return rest;
}

}  // namespace aerie
