// Tokens that are looked for in a text before anything else is done to it, such as control tokens.
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
    bool single_word = false;   // not next to letters, digits or connectors
    bool takes_left = false;    // includes the white space before it
    bool takes_right = false;   // includes the white space after it
    bool normalised = false;    // looked for in normalised text, by its own normalised spelling
    bool special = false;       // a control token, which a user's text must not contain
    std::string spelling = {};  // the form that is looked for and decoded; set by AddedTokens
};

// Added tokens that are recognised in a text, the strictest last. Text of a user must not become
// control tokens.
enum class Recognised : uint8_t { all, not_special, none };

// The added tokens that may be recognised at each byte of a text. For a token, the strictest of its
// bytes counts. If `by_byte` is empty, `everywhere` holds for all bytes.
struct Recognition {
    Recognised everywhere = Recognised::all;
    std::string by_byte = {};  // empty, or a Recognised for each

    Recognised within(size_t begin, size_t end) const;
    Recognition part(size_t begin, size_t end) const;
};

class AddedTokens {
  public:
    // Throws Error, one line that names no file, for a token that is empty, too long or there
    // twice.
    AddedTokens(std::vector<AddedToken> tokens, const Normaliser& normaliser);
    AddedTokens() = default;

    const std::vector<AddedToken>& tokens() const { return tokens_; }

    // A piece of text: plain (token < 0) or one token.
    struct Piece {
        std::string_view text;
        int token = -1;
    };
    // Cuts `text` at the added tokens; where several begin, the longest is taken. `normalised`:
    // looks for the tokens of normalised text, else for those of raw text. Throws Error, one line
    // that names no file, if the tokens were made so that looking for them takes too long.
    std::vector<Piece> cut(std::string_view text, bool normalised,
                           const Recognition& recognition) const;

  private:
    // Spellings in ascending order, and for each first byte the row where its spellings begin.
    struct Table {
        struct Row {
            std::string text;
            size_t token = 0;  // index in tokens_
        };
        std::vector<Row> rows;
        std::array<size_t, 257> first{};

        void sort();
    };
    // The row of the longest token at `at` in `text`; nullptr: none. Adds to `steps`.
    const Table::Row* longest(const Table& table, std::string_view text, size_t at,
                              const Recognition& recognition, size_t& steps) const;
    bool allowed(size_t token, Recognised recognised) const;

    std::vector<AddedToken> tokens_;
    Table raw_, normalised_;
};

}  // namespace aerie
