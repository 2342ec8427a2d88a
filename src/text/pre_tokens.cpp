// Each step cuts every word that the steps before it have left.
#include "text/pre_tokens.h"

#include <algorithm>

#include "core/error.h"

namespace aerie {
namespace {

// Limit for the bytes of the words that steps rewrite.
constexpr size_t kMaxRewritten = 64 << 10, kMaxRewrittenPerByte = 64;

struct Word {
    std::string_view text;
    bool begins_text = false;
};

struct Part {
    Span span;
    bool is_match = false;
};

// The whole text as matches and the parts between them.
std::vector<Part> parts_of(std::string_view text, const std::vector<Span>& found, bool inverted) {
    std::vector<Part> parts;
    parts.reserve(2 * found.size() + 1);
    size_t done = 0;
    for (const Span span : found) {
        if (done != span.begin) parts.push_back({{done, span.begin}, inverted});
        parts.push_back({span, !inverted});
        done = span.end;
    }
    if (done != text.size()) parts.push_back({{done, text.size()}, inverted});
    return parts;
}

// Joins a part to the one before if `joins(that one is a match, this one is a match)`.
template <typename Joins>
void join(std::vector<Part>& parts, const Joins& joins) {
    std::vector<Part> joined;
    bool previous = false;
    for (const Part& part : parts) {
        if (joins(previous, part.is_match) && !joined.empty()) {
            Span& last = joined.back().span;
            last = {std::min(last.begin, part.span.begin), std::max(last.end, part.span.end)};
        } else {
            joined.push_back(part);
        }
        previous = part.is_match;
    }
    parts = std::move(joined);
}

void delimit(std::vector<Part>& parts, Delimiter delimiter) {
    const auto first_match = [](bool previous, bool is_match) { return is_match && !previous; };
    const auto alike = [](bool previous, bool is_match) { return is_match == previous; };
    switch (delimiter) {
        case Delimiter::isolated:
            break;
        case Delimiter::removed:
            std::erase_if(parts, [](const Part& part) { return part.is_match; });
            break;
        case Delimiter::contiguous:
            join(parts, alike);
            break;
        case Delimiter::merged_with_previous:
            join(parts, first_match);
            break;
        case Delimiter::merged_with_next:
            std::reverse(parts.begin(), parts.end());
            join(parts, first_match);
            std::reverse(parts.begin(), parts.end());
            break;
    }
}

// Applies one step to a word.
struct Cut {
    const Word& word;
    std::vector<Word>& words;
    std::vector<Span>& found;
    std::deque<std::string>& made;
    Regex::Scratch& scratch;
    size_t& left;  // bytes left for rewritten words

    std::string_view keep(std::string text) const {
        const size_t bytes = sizeof(text) + text.size();
        if (bytes > left) throw Error("a text that grows too much where words are cut");
        left -= bytes;
        return made.emplace_back(std::move(text));
    }

    void split(const Word& whole, const Pattern& pattern, Delimiter delimiter,
               bool inverted) const {
        find_all(pattern, whole.text, scratch, found);
        std::vector<Part> parts = parts_of(whole.text, found, inverted);
        delimit(parts, delimiter);
        for (const Part& part : parts) {
            if (part.span.begin == part.span.end) continue;
            words.push_back({whole.text.substr(part.span.begin, part.span.end - part.span.begin),
                             whole.begins_text && part.span.begin == 0});
        }
    }

    void operator()(const PreTokens::Split& step) const {
        split(word, step.pattern, step.delimiter, step.inverted);
    }

    void operator()(const PreTokens::PrefixSpace&) const {
        if (word.text.starts_with(' ')) {
            words.push_back(word);
            return;
        }
        words.push_back({keep(' ' + std::string(word.text)), word.begins_text});
    }

    // The word with its spaces replaced, and with a replacement in front if `prepends`.
    std::string spelled(const PreTokens::Metaspace& step, bool prepends) const {
        std::string text = prepends ? step.replacement : "";
        for (const char byte : word.text) {
            if (byte == ' ') {
                text += step.replacement;
            } else {
                text += byte;
            }
        }
        return text;
    }

    void operator()(const PreTokens::Metaspace& step) const {
        using Prepend = PreTokens::Metaspace::Prepend;
        const bool begins_so =
            word.text.starts_with(' ') || word.text.starts_with(step.replacement);
        const bool prepends = !begins_so && (step.prepend == Prepend::always ||
                                             (step.prepend == Prepend::first && word.begins_text));
        const bool changes = prepends || word.text.find(' ') != std::string_view::npos;
        const Word whole{changes ? keep(spelled(step, prepends)) : word.text, word.begins_text};
        if (step.splits) {
            split(whole, step.replacement, Delimiter::merged_with_next, false);
        } else {
            words.push_back(whole);
        }
    }
};

}  // namespace

std::vector<std::string_view> PreTokens::cut(std::string_view text, bool begins_text,
                                             std::deque<std::string>& made,
                                             Regex::Scratch& scratch) const {
    std::vector<Word> words, next;
    std::vector<Span> found;
    size_t left = kMaxRewritten + kMaxRewrittenPerByte * text.size();
    const Regex::Scratch::Watch watch(scratch);
    if (!text.empty()) words.push_back({text, begins_text});
    for (const Step& step : steps_) {
        next.clear();
        for (const Word& word : words)
            std::visit(Cut{word, next, found, made, scratch, left}, step);
        words.swap(next);
    }
    std::vector<std::string_view> out;
    out.reserve(words.size());
    for (const Word& word : words) out.push_back(word.text);
    return out;
}

}  // namespace aerie
