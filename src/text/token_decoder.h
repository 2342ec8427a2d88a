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
    struct ByteFallback {};  // "<0x0A>" is a byte; a run of them that is no UTF-8 becomes U+FFFDs
    struct Fuse {};          // all tokens become one, for the steps that follow
    struct Replace {
        Pattern pattern;
        std::string content;
    };
    struct Strip {  // up to so many of a character at the ends of every token
        std::string character;
        size_t start = 0, stop = 0;
    };
    // A replacement character is a space, but nothing in the first token if encoding prepends one.
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

    // What one token adds in the middle of a text, as bytes: the same as decode where its bytes
    // are well-formed UTF-8, but a character may come in parts. Throws Error.
    std::string bytes(std::string_view token, Regex::Room& room) const;

    // The first token of a text loses a space.
    bool drops_leading_space() const;

  private:
    std::vector<Step> steps_;  // in order
    std::string separator_;
};

}  // namespace aerie
