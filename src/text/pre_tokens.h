// Pre-tokenization: a text is cut into the words that are encoded one by one.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/normalise.h"
#include "text/regex.h"

namespace aerie {

// GPT-2's expression, which ByteLevel of tokenizer.json implies.
constexpr std::string_view kGpt2Split =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// How a split treats the matches of its pattern.
enum class Delimiter { isolated, removed, merged_with_previous, merged_with_next, contiguous };

class PreTokens {
  public:
    struct Split {
        Pattern pattern;
        Delimiter delimiter = Delimiter::isolated;
        bool inverted = false;  // matches and the text between them swap roles
    };
    struct PrefixSpace {};  // a space in front of every word that does not begin with one
    // Spaces become `replacement`. One more is put in front of every word (always) or of the one
    // that begins the text (first), unless the word begins with one. If `splits`, the text is then
    // cut in front of each.
    struct Metaspace {
        enum class Prepend { always, first, never };
        std::string replacement;
        Prepend prepend = Prepend::always;
        bool splits = true;
    };
    using Step = std::variant<Split, PrefixSpace, Metaspace>;

    PreTokens() = default;
    explicit PreTokens(std::vector<Step> steps) : steps_(std::move(steps)) {}

    const std::vector<Step>& steps() const { return steps_; }

    // The words of `text` in order; none is empty. `begins_text`: nothing precedes it. The views
    // point into `text` and `made`. Throws Error, one line that names no file.
    std::vector<std::string_view> cut(std::string_view text, bool begins_text,
                                      std::deque<std::string>& made, Regex::Scratch& scratch) const;

  private:
    std::vector<Step> steps_;  // in order
};

}  // namespace aerie
