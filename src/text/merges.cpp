// Merges in an open hash table, at most half full, keyed by both ids.
#include "text/merges.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

constexpr size_t kMaxProbes = 1024;
// Every way to cut a piece is tried, and each try reads both halves.
constexpr size_t kMaxPieceBytes = 1024;
constexpr size_t kMaxBytesRead = size_t(1) << 28;

// Every bit of the pair affects every bit of the hash.
uint64_t hash_of(uint64_t pair) {
    pair = (pair ^ pair >> 32) * 0xD6E8FEB86659FD93u;
    pair = (pair ^ pair >> 32) * 0xD6E8FEB86659FD93u;
    return pair ^ pair >> 32;
}

uint64_t pair_of(int left, int right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
}

}  // namespace

void Merges::add(int left, int right, Merge merge) {
    if (slots_.size() < 2 * (count_ + 1)) grow();
    const uint64_t pair = pair_of(left, right);
    Slot& slot = slots_[slot_of(pair)];
    if (slot.merge.merged < 0) ++count_;
    slot = {pair, merge};
}

const Merge* Merges::find(int left, int right) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[slot_of(pair_of(left, right))];
    return slot.merge.merged < 0 ? nullptr : &slot.merge;
}

size_t Merges::slot_of(uint64_t pair) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash_of(pair) & mask;
    for (size_t probes = 0; slots_[at].merge.merged >= 0; at = (at + 1) & mask) {
        if (slots_[at].pair == pair) break;
        if (++probes > kMaxProbes) throw Error("merges that collide in the table of merges");
    }
    return at;
}

void Merges::grow() {
    std::vector<Slot> old(slots_.empty() ? 256 : 2 * slots_.size());
    old.swap(slots_);
    for (const Slot& slot : old) {
        if (slot.merge.merged >= 0) slots_[slot_of(slot.pair)] = slot;
    }
}

void Merges::add(const Vocabulary& vocabulary, std::string_view whole, size_t left_bytes,
                 uint32_t rank) {
    const auto id_of = [&](std::string_view text) {
        const int id = vocabulary.id_of(text);
        if (id < 0) throw Error("a merge names " + in_quotes(text) + ", which is no token");
        return id;
    };
    const int merged = id_of(whole), left = id_of(whole.substr(0, left_bytes));
    add(left, id_of(whole.substr(left_bytes)), {rank, merged});
}

std::optional<std::pair<std::string_view, std::string_view>> sides_of(std::string_view merge) {
    const size_t space = merge.find(' ');
    if (space == merge.npos || merge.find(' ', space + 1) != merge.npos) return std::nullopt;
    return std::pair(merge.substr(0, space), merge.substr(space + 1));
}

Merges merges_by_score(const Vocabulary& vocabulary, std::span<const float> scores) {
    std::vector<float> descending;
    for (const float score : scores) {
        if (!std::isnan(score)) descending.push_back(score);
    }
    std::sort(descending.begin(), descending.end(), std::greater<>());
    descending.erase(std::unique(descending.begin(), descending.end()), descending.end());
    const auto joins = [&](int id) {
        return id >= 0 && size_t(id) < scores.size() && !std::isnan(scores[size_t(id)]);
    };
    Merges merges;
    size_t bytes_read = 0;
    for (int id = 0; id < vocabulary.size(); ++id) {
        if (!joins(id)) continue;
        const std::string_view text = vocabulary.text(id);
        if (text.size() > kMaxPieceBytes) throw Error("a token of more than 1,024 bytes");
        bytes_read += text.size() * text.size();
        if (bytes_read > kMaxBytesRead) throw Error("too many long tokens to find their merges");
        const auto place = std::lower_bound(descending.begin(), descending.end(),
                                            scores[size_t(id)], std::greater<>());
        const Merge merge{uint32_t(place - descending.begin()), id};
        for (size_t cut = 1; cut < text.size(); ++cut) {
            const int left = vocabulary.id_of(text.substr(0, cut));
            if (!joins(left)) continue;
            const int right = vocabulary.id_of(text.substr(cut));
            if (joins(right)) merges.add(left, right, merge);
        }
    }
    return merges;
}

}  // namespace aerie
