// Byte pair encoding of one word: neighbouring characters or bytes are joined two by two, in the
// order of the merges. One engine serves tokenizer.json (ranks) and SentencePiece (scores).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "text/merges.h"
#include "text/vocabulary.h"

namespace aerie {

struct BpeRules {
    bool byte_level = false;     // tokens are spelled in the byte alphabet; words are bytes
    bool byte_fallback = false;  // an unknown character becomes "<0x0A>" tokens, if all are there
    bool ignore_merges = false;  // a word that is a token becomes that token at once
    bool fuse_unknown = false;   // neighbouring unknown characters become one unknown token
    int unknown = -1;            // token of unknown characters; -1: they are left out
};

class Bpe {
  public:
    // Working memory for one caller of encode. A Bpe may serve many callers at once, each with a
    // Scratch of its own. It also remembers short words.
    class Scratch;

    // `unused`: by id, tokens that are only intermediate results of merges (SentencePiece's
    // UNUSED); one that is left at the end is replaced by the tokens that it was joined from.
    // Throws Error, one line that names no file.
    Bpe(Vocabulary vocabulary, Merges merges, const BpeRules& rules, std::vector<bool> unused = {});

    const Vocabulary& vocabulary() const { return vocabulary_; }
    const Merges& merges() const { return merges_; }
    const BpeRules& rules() const { return rules_; }

    // Appends the tokens of a word, which is well-formed UTF-8 of less than 4 GB. Takes time
    // proportional to n log n.
    void encode(std::string_view word, Scratch& scratch, std::vector<int>& ids) const;

  private:
    void fill_byte_level();
    void fill_borders();
    bool may_join(char32_t left, char32_t right) const;
    void encode_part(std::string_view part, Scratch& scratch, std::vector<int>& ids) const;
    void symbols_of(std::string_view part, std::vector<int>& symbols) const;
    bool append_bytes(std::string_view character, std::vector<int>& symbols) const;
    void list_symbols(const std::vector<int>& symbols, Scratch& scratch) const;
    bool add_candidate(uint32_t at, Scratch& scratch) const;
    void join(std::vector<int>& symbols, Scratch& scratch) const;
    bool is_unused(int id) const { return size_t(id) < unused_.size() && unused_[size_t(id)]; }
    void append_used(int id, const Scratch& scratch, std::vector<int>& symbols) const;

    Vocabulary vocabulary_;
    Merges merges_;
    BpeRules rules_;
    std::vector<bool> unused_;          // by id; empty: no token is
    Vocabulary words_;                  // byte-level: the tokens as bytes
    std::array<int, 256> byte_ids_{};   // byte-level or byte fallback; -1: none
    std::array<int, 128> ascii_ids_{};  // tokens of the characters below 128; not if byte-level
    bool cuts_ = false;                 // words may be cut where no token spans the place
    std::vector<uint64_t> joined_;      // bits: hashes of neighbouring characters in merged tokens
};

class Bpe::Scratch {
  private:
    friend class Bpe;

    // A symbol of the word in a doubly linked list.
    struct Node {
        int id = 0;
        uint32_t previous = 0, next = 0;
        uint32_t symbols = 0;  // joined in this node; 0: the node was joined to an earlier one
    };
    // A pair that may join. It is outdated if one of the two has changed: they have more symbols
    // then.
    struct Candidate {
        uint64_t order = 0;  // rank, then position
        int merged = 0;
        uint32_t symbols = 0;
    };
    struct Remembered {
        uint8_t bytes = 0;  // 0: a free entry
        uint8_t tokens = 0;
        std::array<char, 26> word;
        std::array<int, 9> ids;
    };

    std::vector<int> symbols_;
    std::vector<Node> nodes_;
    std::vector<Candidate> heap_;
    std::unordered_map<int, std::pair<int, int>> joined_from_;  // for unused tokens of this word
    std::vector<Remembered> remembered_;  // by hash; a new word replaces an old one
};

}  // namespace aerie
