// Tokens that are found in text before anything else is done to it: control tokens and such.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalise.h"

namespace aerie {

struct AddedToken {
    std::string text;
    int id = -1;
    bool single_word = false;   // not beside letters, digits or connectors
    bool takes_left = false;    // with the white space before it
    bool takes_right = false;   // with the white space after it
    bool normalised = false;    // looked for in normalised text, in its own normalised spelling
    bool special = false;       // a control token: no part of what a user says
    std::string spelling = {};  // as it is looked for and decoded; AddedTokens fills it in
};

// Which of them are looked for in a text, the strictest last. Text of a user must not become
// control tokens.
enum class Recognised : uint8_t { all, not_special, none };

// For each byte of a text what may be recognised there: in a token, the strictest of its bytes
// counts. Without bytes the same everywhere.
struct Recognition {
    Recognised everywhere = Recognised::all;
    std::string by_byte = {};  // empty, or a Recognised for each

    Recognised within(size_t begin, size_t end) const;
    Recognition part(size_t begin, size_t end) const;
};

class AddedTokens {
  public:
    // Throws Error, one line that names no file: a token that is empty, too long or there twice.
    AddedTokens(std::vector<AddedToken> tokens, const Normaliser& normaliser);
    AddedTokens() = default;

    const std::vector<AddedToken>& tokens() const { return tokens_; }

    // A piece of text: plain (token < 0) or one token.
    struct Piece {
        std::string_view text;
        int token = -1;
    };
    // `text` cut at the tokens, of which the longest counts where several begin. `normalised`:
    // those of normalised text, else those of raw text. Throws Error, one line that names no file,
    // if the tokens were made so that looking for them takes too long.
    std::vector<Piece> cut(std::string_view text, bool normalised,
                           const Recognition& recognition) const;

  private:
    // Spellings in ascending order, and where those with a first byte begin.
    struct Table {
        struct Row {
            std::string text;
            size_t token = 0;  // in tokens_
        };
        std::vector<Row> rows;
        std::array<size_t, 257> first{};

        void sort();
    };
    // The row of the longest token at this place of `text`; nullptr: none. Counts its steps.
    const Table::Row* longest(const Table& table, std::string_view text, size_t at,
                              const Recognition& recognition, size_t& steps) const;
    bool allowed(size_t token, Recognised recognised) const;

    std::vector<AddedToken> tokens_;
    Table raw_, normalised_;
};

}  // namespace aerie
