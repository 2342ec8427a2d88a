// The tokens of a vocabulary: text by id, and id by text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace aerie {

class Vocabulary {
  public:
    // Ids are below this; a table of them costs 8 bytes each.
    static constexpr int kMaxIds = 1 << 20;

    // Throws Error, one line that names no file, if the text or the id is there already, or the id
    // is not in [0, kMaxIds).
    void add(std::string_view text, int id);

    int size() const { return int(places_.size()); }  // the highest id + 1
    bool has(int id) const { return id >= 0 && id < size() && places_[size_t(id)].is_used; }
    std::string_view text(int id) const;     // empty for an id that it does not have
    int id_of(std::string_view text) const;  // -1: none

  private:
    struct Place {
        uint32_t begin = 0;
        uint32_t size : 31 = 0;
        uint32_t is_used : 1 = 0;
    };
    struct Slot {
        uint32_t tag = 0;  // part of the hash
        int id = -1;       // -1: free
    };

    size_t slot_of(std::string_view text, uint64_t hash) const;
    void grow();

    std::string texts_;          // all, one after the other
    std::vector<Place> places_;  // by id
    std::vector<Slot> slots_;    // a power of two
    size_t count_ = 0;
};

}  // namespace aerie
