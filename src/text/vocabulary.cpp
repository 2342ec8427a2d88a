// Tokens in one string, found by an open hash table that is at most half full.
#include "text/vocabulary.h"

#include <functional>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

// A file may be made so that its tokens share a hash, and looking them up would take forever.
constexpr size_t kMaxProbes = 1024;
constexpr size_t kMaxTextBytes = size_t(1) << 30;

uint64_t hash_of(std::string_view text) {
    return std::hash<std::string_view>()(text);
}

}  // namespace

void Vocabulary::add(std::string_view text, int id) {
    const auto shown = [&] { return "token " + in_quotes(text); };
    if (id < 0 || id >= kMaxIds) {
        throw Error(shown() + " has the id " + std::to_string(id) + ", which is out of range");
    }
    if (has(id)) throw Error(shown() + " has the id of " + in_quotes(this->text(id)));
    if (texts_.size() + text.size() > kMaxTextBytes) throw Error("tokens of more than 1 GB");
    if (slots_.size() < 2 * (count_ + 1)) grow();
    const uint64_t hash = hash_of(text);
    Slot& slot = slots_[slot_of(text, hash)];
    if (slot.id >= 0) throw Error(shown() + " is there twice");
    slot = {uint32_t(hash >> 32), id};
    if (id >= size()) places_.resize(size_t(id) + 1);
    places_[size_t(id)] = {uint32_t(texts_.size()), uint32_t(text.size()), 1};
    texts_ += text;
    ++count_;
}

std::string_view Vocabulary::text(int id) const {
    if (!has(id)) return {};
    const Place place = places_[size_t(id)];
    return std::string_view(texts_).substr(place.begin, place.size);
}

int Vocabulary::id_of(std::string_view text) const {
    return slots_.empty() ? -1 : slots_[slot_of(text, hash_of(text))].id;
}

// The slot of the text, or the free slot where it belongs.
size_t Vocabulary::slot_of(std::string_view text, uint64_t hash) const {
    const size_t mask = slots_.size() - 1;
    size_t at = hash & mask;
    for (size_t probes = 0; slots_[at].id >= 0; at = (at + 1) & mask) {
        if (slots_[at].tag == uint32_t(hash >> 32) && this->text(slots_[at].id) == text) break;
        if (++probes > kMaxProbes) throw Error("tokens that collide in the table of tokens");
    }
    return at;
}

void Vocabulary::grow() {
    slots_.assign(slots_.empty() ? 256 : 2 * slots_.size(), Slot());
    for (int id = 0; id < size(); ++id) {
        if (!has(id)) continue;
        const uint64_t hash = hash_of(text(id));
        slots_[slot_of(text(id), hash)] = {uint32_t(hash >> 32), id};
    }
}

}  // namespace aerie
