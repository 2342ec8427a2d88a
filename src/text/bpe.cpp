// Merging by a heap of candidates over a linked list. Words are cut where no token can span the
// place; the parts are encoded one by one, and short ones are remembered.
#include "text/bpe.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "core/error.h"
#include "core/utf8.h"
#include "text/byte_alphabet.h"

namespace aerie {
namespace {

constexpr size_t kRemembered = 1 << 14;
constexpr uint32_t kNone = UINT32_MAX;  // no node

uint64_t hash_of(char32_t left, char32_t right) {
    const uint64_t mixed = (uint64_t(left) << 32 | right) * 0x9E3779B97F4A7C15u;
    return mixed ^ mixed >> 32;
}

// The front of the heap has the lowest order.
constexpr auto kLater = [](const auto& a, const auto& b) { return a.order > b.order; };

}  // namespace

Bpe::Bpe(Vocabulary vocabulary, Merges merges, const BpeRules& rules, std::vector<bool> unused)
    : vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      rules_(rules),
      unused_(std::move(unused)) {
    byte_ids_.fill(-1);
    for (size_t code = 0; code < ascii_ids_.size(); ++code) {
        const char character = char(code);
        ascii_ids_[code] = vocabulary_.id_of({&character, 1});
    }
    if (rules_.byte_level) {
        fill_byte_level();
        return;
    }
    if (rules_.byte_fallback) {
        for (size_t byte = 0; byte < byte_ids_.size(); ++byte) {
            byte_ids_[byte] = vocabulary_.id_of(byte_token(uint8_t(byte)));
        }
    }
    fill_borders();
}

void Bpe::fill_byte_level() {
    for (int id = 0; id < vocabulary_.size(); ++id) {
        if (!vocabulary_.has(id)) continue;
        const std::optional<std::string> bytes = bytes_of_token(vocabulary_.text(id));
        if (!bytes) continue;  // no word has such a character
        words_.add(*bytes, id);
        if (bytes->size() == 1) byte_ids_[uint8_t(bytes->front())] = id;
    }
    const bool complete = std::find(byte_ids_.begin(), byte_ids_.end(), -1) == byte_ids_.end();
    if (rules_.byte_fallback && !complete) {
        throw Error("byte_fallback in a byte-level model that lacks bytes is not supported",
                    Cause::unsupported);
    }
}

// Cutting changes nothing if every character is a symbol of its own, known or as bytes, and all
// merges are of characters: then a token that spans a border has its two characters side by side.
// With unused tokens the result may depend on the whole word, so words are not cut.
void Bpe::fill_borders() {
    if (std::find(unused_.begin(), unused_.end(), true) != unused_.end()) return;
    std::vector<bool> is_byte(size_t(vocabulary_.size()));
    for (const int id : byte_ids_) {
        if (id < 0) return;
        is_byte[size_t(id)] = true;
    }
    std::vector<std::string_view> merged;
    size_t bytes = 0;
    bool clean = true;
    merges_.for_each([&](int left, int right, const Merge& merge) {
        clean = clean && !is_byte[size_t(left)] && !is_byte[size_t(right)] &&
                left != rules_.unknown && right != rules_.unknown;
        merged.push_back(vocabulary_.text(merge.merged));
        bytes += merged.back().size();
    });
    if (!clean) return;
    cuts_ = true;
    joined_.resize(std::bit_ceil(std::clamp<size_t>(bytes, 1 << 16, 1 << 22)) / 64);
    for (std::string_view text : merged) {
        char32_t left = text.empty() ? 0 : take_char(text);
        while (!text.empty()) {
            const char32_t right = take_char(text);
            const uint64_t hash = hash_of(left, right);
            joined_[hash / 64 & (joined_.size() - 1)] |= uint64_t(1) << hash % 64;
            left = right;
        }
    }
}

bool Bpe::may_join(char32_t left, char32_t right) const {
    const uint64_t hash = hash_of(left, right);
    return joined_[hash / 64 & (joined_.size() - 1)] >> hash % 64 & 1;
}

void Bpe::encode(std::string_view word, Scratch& scratch, std::vector<int>& ids) const {
    if (word.empty()) return;
    if (rules_.ignore_merges) {
        const int id = (rules_.byte_level ? words_ : vocabulary_).id_of(word);
        if (id >= 0) {
            ids.push_back(id);
            return;
        }
    }
    if (!cuts_) return encode_part(word, scratch, ids);
    std::string_view rest = word;
    const char* begin = word.data();
    char32_t left = take_char(rest);
    while (!rest.empty()) {
        const char* border = rest.data();
        const char32_t right = take_char(rest);
        if (!may_join(left, right)) {
            encode_part({begin, size_t(border - begin)}, scratch, ids);
            begin = border;
        }
        left = right;
    }
    encode_part({begin, size_t(word.data() + word.size() - begin)}, scratch, ids);
}

void Bpe::encode_part(std::string_view part, Scratch& scratch, std::vector<int>& ids) const {
    Scratch::Remembered* remembered = nullptr;
    if (part.size() <= sizeof(remembered->word)) {
        if (scratch.remembered_.empty()) scratch.remembered_.resize(kRemembered);
        remembered = &scratch.remembered_[std::hash<std::string_view>()(part) % kRemembered];
        if (remembered->bytes == part.size() &&
            std::memcmp(remembered->word.data(), part.data(), part.size()) == 0) {
            ids.insert(ids.end(), remembered->ids.begin(),
                       remembered->ids.begin() + remembered->tokens);
            return;
        }
    }
    std::vector<int>& symbols = scratch.symbols_;
    symbols.clear();
    symbols_of(part, symbols);
    if (symbols.size() > 1) join(symbols, scratch);
    ids.insert(ids.end(), symbols.begin(), symbols.end());
    if (remembered && symbols.size() <= remembered->ids.size()) {
        remembered->bytes = uint8_t(part.size());
        remembered->tokens = uint8_t(symbols.size());
        std::copy(part.begin(), part.end(), remembered->word.begin());
        std::copy(symbols.begin(), symbols.end(), remembered->ids.begin());
    }
}

// Appends the "<0x0A>" tokens of a character; false unless all of them exist.
bool Bpe::append_bytes(std::string_view character, std::vector<int>& symbols) const {
    for (const char byte : character) {
        if (byte_ids_[uint8_t(byte)] < 0) return false;
    }
    for (const char byte : character) symbols.push_back(byte_ids_[uint8_t(byte)]);
    return true;
}

// An unknown token is held back until a known symbol follows: byte tokens in between come before
// it, as in the tokenizers library.
void Bpe::symbols_of(std::string_view part, std::vector<int>& symbols) const {
    bool waits = false;
    while (!part.empty()) {
        const std::string_view before = part;
        int id;
        if (rules_.byte_level) {
            id = byte_ids_[uint8_t(part.front())];
            part.remove_prefix(1);
        } else {
            const char32_t code = take_char(part);
            id = code < ascii_ids_.size()
                     ? ascii_ids_[code]
                     : vocabulary_.id_of(before.substr(0, before.size() - part.size()));
        }
        if (id >= 0) {
            if (waits) symbols.push_back(rules_.unknown);
            waits = false;
            symbols.push_back(id);
            continue;
        }
        const std::string_view character = before.substr(0, before.size() - part.size());
        if (rules_.byte_fallback && append_bytes(character, symbols)) continue;
        if (rules_.unknown < 0) continue;
        if (waits && !rules_.fuse_unknown) symbols.push_back(rules_.unknown);
        waits = true;
    }
    if (waits) symbols.push_back(rules_.unknown);
}

void Bpe::list_symbols(const std::vector<int>& symbols, Scratch& scratch) const {
    const uint32_t count = uint32_t(symbols.size());
    scratch.nodes_.resize(count);
    for (uint32_t i = 0; i < count; ++i) {
        scratch.nodes_[i] = {symbols[i], i == 0 ? kNone : i - 1, i + 1 == count ? kNone : i + 1, 1};
    }
}

// Appends the join of this node with the next to the heap; false: they do not join.
bool Bpe::add_candidate(uint32_t at, Scratch& scratch) const {
    const Scratch::Node& left = scratch.nodes_[at];
    if (left.next == kNone) return false;
    const Scratch::Node& right = scratch.nodes_[left.next];
    const Merge* merge = merges_.find(left.id, right.id);
    if (!merge) return false;
    scratch.heap_.push_back(
        {uint64_t(merge->rank) << 32 | at, merge->merged, left.symbols + right.symbols});
    if (is_unused(merge->merged)) scratch.joined_from_[merge->merged] = {left.id, right.id};
    return true;
}

void Bpe::join(std::vector<int>& symbols, Scratch& scratch) const {
    std::vector<Scratch::Node>& nodes = scratch.nodes_;
    std::vector<Scratch::Candidate>& heap = scratch.heap_;
    list_symbols(symbols, scratch);
    heap.clear();
    scratch.joined_from_.clear();
    for (uint32_t at = 0; at < nodes.size(); ++at) add_candidate(at, scratch);
    std::make_heap(heap.begin(), heap.end(), kLater);
    const auto push = [&](uint32_t at) {
        if (at != kNone && add_candidate(at, scratch))
            std::push_heap(heap.begin(), heap.end(), kLater);
    };
    while (!heap.empty()) {
        const Scratch::Candidate best = heap.front();
        std::pop_heap(heap.begin(), heap.end(), kLater);
        heap.pop_back();
        const uint32_t at = uint32_t(best.order);
        Scratch::Node& left = nodes[at];
        if (left.symbols == 0 || left.next == kNone) continue;
        Scratch::Node& right = nodes[left.next];
        if (left.symbols + right.symbols != best.symbols) continue;
        left = {best.merged, left.previous, right.next, best.symbols};
        right.symbols = 0;
        if (left.next != kNone) nodes[left.next].previous = at;
        push(left.previous);
        push(at);
    }
    symbols.clear();
    for (uint32_t at = 0; at != kNone; at = nodes[at].next) {
        append_used(nodes[at].id, scratch, symbols);
    }
}

// As in SentencePiece, an unused token that was not joined from two others stays.
void Bpe::append_used(int id, const Scratch& scratch, std::vector<int>& symbols) const {
    const auto found = is_unused(id) ? scratch.joined_from_.find(id) : scratch.joined_from_.end();
    if (found == scratch.joined_from_.end()) {
        symbols.push_back(id);
        return;
    }
    append_used(found->second.first, scratch, symbols);
    append_used(found->second.second, scratch, symbols);
}

}  // namespace aerie
