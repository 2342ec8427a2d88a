// The changes that a tokenizer makes to a text before it is split.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/regex.h"
#include "text/unicode.h"

namespace aerie {

// A text or an expression to look for.
using Pattern = std::variant<std::string, Regex>;

// Finds the matches of `pattern` in `text`, from left to right.
void find_all(const Pattern& pattern, std::string_view text, Regex::Scratch& scratch,
              std::vector<Span>& found);

class Normaliser {
  public:
    struct Prepend {
        std::string text;  // in front of a text that is not empty
    };
    struct Replace {
        Pattern pattern;
        std::string content;
    };
    struct Strip {
        bool left = true, right = true;  // white space
    };
    using Step = std::variant<NormalForm, Prepend, Replace, Strip>;

    Normaliser() = default;
    explicit Normaliser(std::vector<Step> steps) : steps_(std::move(steps)) {}

    // The most bytes that a text of so many bytes may become.
    static size_t most_bytes(size_t bytes);
    // `text` is well-formed UTF-8. `labels` has one for each byte, or is empty: bytes made of
    // several get the highest of their labels. Throws Error, one line that names no file, also if
    // the text becomes larger than `most`.
    std::string apply(std::string text, std::string& labels, Regex::Scratch& scratch,
                      size_t most) const;
    // The same without labels.
    std::string apply(std::string text, Regex::Scratch& scratch, size_t most) const {
        std::string no_labels;
        return apply(std::move(text), no_labels, scratch, most);
    }
    std::string apply(std::string text, Regex::Scratch& scratch) const {
        const size_t most = most_bytes(text.size());
        return apply(std::move(text), scratch, most);
    }
    bool empty() const { return steps_.empty(); }
    const std::vector<Step>& steps() const { return steps_; }

  private:
    std::vector<Step> steps_;  // in order
};

}  // namespace aerie
