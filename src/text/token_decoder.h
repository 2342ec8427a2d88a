// From the texts of tokens back to text.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/normalise.h"

namespace aerie {

class TokenDecoder {
  public:
    struct ByteLevel {};     // tokens are spelled in the byte alphabet
    struct ByteFallback {};  // "<0x0A>" is a byte; a run that is not UTF-8 becomes U+FFFDs
    struct Fuse {};          // all tokens become one, for the steps that follow
    struct Replace {
        Pattern pattern;
        std::string content;
    };
    struct Strip {  // removes up to so many of a character at the ends of every token
        std::string character;
        size_t start = 0, stop = 0;
    };
    // The replacement becomes a space; in the first token it is removed if encoding prepends one.
    struct Metaspace {
        std::string replacement;
        bool prepends = true;
    };
    using Step = std::variant<ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace>;

    // Without steps, `separator` stands between tokens.
    explicit TokenDecoder(std::vector<Step> steps = {}, std::string separator = "");

    size_t steps() const { return steps_.size(); }

    // Throws Error, one line that names no file.
    std::string decode(std::vector<std::string> tokens) const;

    // The bytes that one token adds in the middle of a text: the same as decode if they are
    // well-formed UTF-8, but a character may come in parts. Throws Error.
    std::string bytes(std::string_view token, Regex::Scratch& scratch) const;

    // Whether the first token of a text loses a space.
    bool drops_leading_space() const;

  private:
    std::vector<Step> steps_;  // in order
    std::string separator_;
};

}  // namespace aerie
