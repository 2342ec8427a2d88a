// The rules by which neighbouring tokens join, and which pair of a word joins first.
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
    uint32_t rank = 0;  // the lowest in a word joins first, the leftmost of equal ones
    int merged = -1;    // the token that the two become
};

class Merges {
  public:
    // A later merge of the same two tokens replaces the first. Ids are not negative. Throws Error,
    // one line that names no file, if the pairs were chosen to collide.
    void add(int left, int right, Merge merge);
    // Adds the merge that makes the token `whole` of its first `left_bytes` and the rest. Throws
    // Error also if one of the three is no token.
    void add(const Vocabulary& vocabulary, std::string_view whole, size_t left_bytes,
             uint32_t rank);
    const Merge* find(int left, int right) const;  // nullptr: they do not join

    // Calls each(left, right, merge) for all merges, in no particular order.
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

// The two sides of a merge "a b" as files write it; nullopt unless there is one space.
std::optional<std::pair<std::string_view, std::string_view>> sides_of(std::string_view merge);

// The merges of a vocabulary that gives scores instead (SentencePiece's BPE): two tokens join if
// their concatenation is a token, the highest score first. `scores` has one for each id, NaN for
// tokens that no text becomes (control tokens, bytes, the unknown one).
Merges merges_by_score(const Vocabulary& vocabulary, std::span<const float> scores);

}  // namespace aerie
