#include "text/common_text.h"

#include <algorithm>

namespace aerie {

namespace {

// A list of ids that is read byte by byte.
class IdBytesReader {
  public:
    IdBytesReader(const BpeTokenizer& tokenizer, std::span<const int> ids)
        : tokenizer_(tokenizer), ids_(ids) {}

    bool at_border() const { return rest_.empty(); }
    bool at_end() const { return next_ == ids_.size(); }
    size_t next() const { return next_; }
    int id() const { return ids_[next_]; }
    void skip() { ++next_; }
    // Moves to the bytes of the next id; false if it has no text.
    bool open() {
        if (at_end() || tokenizer_.is_added(id())) return false;
        rest_ = tokenizer_.bytes(id());
        ++next_;
        return !rest_.empty();
    }
    // Both move on by as many bytes as both have left; false if these differ.
    static bool agree(IdBytesReader& a, IdBytesReader& b) {
        const size_t count = std::min(a.rest_.size(), b.rest_.size());
        const bool equal = a.rest_.substr(0, count) == b.rest_.substr(0, count);
        a.rest_.remove_prefix(count);
        b.rest_.remove_prefix(count);
        return equal;
    }

  private:
    const BpeTokenizer& tokenizer_;
    std::span<const int> ids_;
    size_t next_ = 0;
    std::string_view rest_;  // unread bytes of the id before next_
};

}  // namespace

CommonText common_text(const BpeTokenizer& tokenizer, std::span<const int> first,
                       std::span<const int> second) {
    IdBytesReader a(tokenizer, first), b(tokenizer, second);
    CommonText common;
    while (true) {
        if (a.at_border() && b.at_border()) {
            common = {a.next(), b.next()};
            if (a.at_end() || b.at_end()) return common;
            if (a.id() == b.id()) {
                a.skip();
                b.skip();
                continue;
            }
        }
        if (a.at_border() && !a.open()) return common;
        if (b.at_border() && !b.open()) return common;
        if (!IdBytesReader::agree(a, b)) return common;
    }
}

std::vector<int> joined_text(const BpeTokenizer& tokenizer, std::span<const int> first,
                             std::span<const int> second) {
    const CommonText common = common_text(tokenizer, first, second);
    std::vector<int> all(first.begin(), first.begin() + ptrdiff_t(common.first));
    all.insert(all.end(), second.begin() + ptrdiff_t(common.second), second.end());
    return all;
}

}  // namespace aerie
