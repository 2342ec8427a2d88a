// Which two neighbouring tokens join, into what, and which pair of a word joins first.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace aerie {

struct Merge {
    uint32_t rank = 0;  // the lowest of a word comes first; of equals the leftmost
    int merged = -1;    // the token that the two become
};

class Merges {
  public:
    // A later merge of the same two takes the place of the first. Tokens are not negative. Throws
    // Error, one line that names no file, if the pairs were made to collide.
    void add(int left, int right, Merge merge);
    // The merge that makes the token `whole` of its first `left_bytes` and the rest. Throws Error
    // also if one of the three is no token.
    void add(const Vocabulary& vocabulary, std::string_view whole, size_t left_bytes,
             uint32_t rank);
    const Merge* find(int left, int right) const;  // nullptr: they do not join

    // Calls each(left, right, merge) for all of them, in no order.
    template <typename Each>
    void for_each(const Each& each) const {
        for (const Slot& slot : slots_) {
            if (slot.merge.merged >= 0) each(int(slot.pair >> 32), int(slot.pair), slot.merge);
        }
    }

  private:
    struct Slot {
        uint64_t pair = 0;
        Merge merge;  // merged < 0: free
    };

    size_t slot_of(uint64_t pair) const;
    void grow();

    std::vector<Slot> slots_;  // a power of two, at most half full
    size_t count_ = 0;
};

// The two sides of "a b", as files write a merge; nothing unless there is one space.
std::optional<std::pair<std::string_view, std::string_view>> sides_of(std::string_view merge);

// The merges of a vocabulary that gives scores instead (SentencePiece's BPE): any two tokens whose
// texts together are a token join, the highest score first. `scores` has one for each id, NaN for
// tokens that no text becomes (control tokens, bytes, the unknown one).
Merges merges_by_score(const Vocabulary& vocabulary, std::span<const float> scores);

}  // namespace aerie
