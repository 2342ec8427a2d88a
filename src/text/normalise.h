// What a tokenizer does to text before anything is split.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/regex.h"
#include "text/unicode.h"

namespace aerie {

// What is looked for: a text or an expression.
using Pattern = std::variant<std::string, Regex>;

// Where `pattern` is in `text`, from left to right.
void find_all(const Pattern& pattern, std::string_view text, Regex::Room& room,
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

    // `text` is well-formed UTF-8. Throws Error, one line that names no file.
    std::string apply(std::string text, Regex::Room& room) const {
        std::string no_labels;
        return apply(std::move(text), no_labels, room);
    }
    // The same with a label for each byte, or none at all: what is made of several bytes has their
    // highest.
    std::string apply(std::string text, std::string& labels, Regex::Room& room) const;
    bool empty() const { return steps_.empty(); }

  private:
    std::vector<Step> steps_;  // in order
};

}  // namespace aerie
