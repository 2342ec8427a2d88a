// Finds added tokens in a sorted table: the rows that begin as the text does are narrowed byte by
// byte.
#include "text/added_tokens.h"

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

// Looking for a token at one place takes as many steps as the token has bytes. The tokens of
// published tokenizers need two steps for each byte of a text.
constexpr size_t kMaxBytes = 256;
constexpr size_t kFirstSteps = 1 << 20, kStepsPerByte = 16;
constexpr size_t kMaxAllBytes = size_t(8) << 20;

char32_t last_char(std::string_view text) {
    size_t at = text.size() - 1;
    while (at > 0 && (uint8_t(text[at]) & 0xC0) == 0x80) --at;
    std::string_view rest = text.substr(at);
    return take_char(rest);
}

char32_t first_char(std::string_view text) {
    return take_char(text);
}

// Where the white space at the end of `text` begins, not before `floor`.
size_t space_before(std::string_view text, size_t floor) {
    while (text.size() > floor && is_white_space(last_char(text))) {
        do text.remove_suffix(1);
        while (!text.empty() && (uint8_t(text.data()[text.size()]) & 0xC0) == 0x80);
    }
    return std::max(text.size(), floor);
}

size_t space_after(std::string_view text, size_t at) {
    std::string_view rest = text.substr(at);
    while (!rest.empty() && is_white_space(first_char(rest))) take_char(rest);
    return text.size() - rest.size();
}

bool stands_alone(std::string_view text, size_t begin, size_t end) {
    return (begin == 0 || !is_word_character(last_char(text.substr(0, begin)))) &&
           (end == text.size() || !is_word_character(first_char(text.substr(end))));
}

}  // namespace

Recognised Recognition::within(size_t begin, size_t end) const {
    if (by_byte.empty()) return everywhere;
    const std::string_view bytes = std::string_view(by_byte).substr(begin, end - begin);
    return Recognised(*std::max_element(bytes.begin(), bytes.end()));
}

Recognition Recognition::part(size_t begin, size_t end) const {
    return {everywhere, by_byte.empty() ? "" : by_byte.substr(begin, end - begin)};
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens, const Normaliser& normaliser)
    : tokens_(std::move(tokens)) {
    std::unordered_set<std::string_view> texts;
    std::unordered_set<int> ids;
    Regex::Scratch scratch;
    size_t all_bytes = 0;
    for (const bool special : {true, false}) {  // special ones win over equal spellings
        for (size_t i = 0; i < tokens_.size(); ++i) {
            AddedToken& token = tokens_[i];
            if (token.special != special) continue;
            const std::string shown = "added token " + in_quotes(token.text);
            if (token.text.empty()) throw Error("an added token is empty");
            if (token.text.size() > kMaxBytes) throw Error(shown + " is too long");
            if (!texts.insert(token.text).second) throw Error(shown + " is there twice");
            if (!ids.insert(token.id).second) throw Error(shown + " has the id of another");
            Table& table = token.normalised ? normalised_ : raw_;
            token.spelling = token.normalised ? normaliser.apply(token.text, scratch) : token.text;
            if (token.spelling.size() > 4 * kMaxBytes) {
                throw Error(shown + " is too long when normalised");
            }
            all_bytes += token.text.size() + token.spelling.size();
            if (all_bytes > kMaxAllBytes) throw Error("added tokens of more than 8 MB");
            if (!token.spelling.empty()) table.rows.push_back({token.spelling, i});
        }
    }
    raw_.sort();
    normalised_.sort();
}

void AddedTokens::Table::sort() {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.text < b.text; });
    size_t row = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
        first[byte] = row;
        while (row < rows.size() && uint8_t(rows[row].text[0]) == byte) ++row;
    }
    first[256] = row;
}

bool AddedTokens::allowed(size_t token, Recognised recognised) const {
    return recognised == Recognised::all ||
           (recognised == Recognised::not_special && !tokens_[token].special);
}

const AddedTokens::Table::Row* AddedTokens::longest(const Table& table, std::string_view text,
                                                    size_t at, const Recognition& recognition,
                                                    size_t& steps) const {
    const Table::Row* best = nullptr;
    const uint8_t lead = uint8_t(text[at]);
    auto low = table.rows.begin() + std::ptrdiff_t(table.first[lead]);
    auto high = table.rows.begin() + std::ptrdiff_t(table.first[lead + size_t(1)]);
    for (size_t depth = 1; low != high; ++depth) {
        ++steps;
        // All rows from low to high begin with these `depth` bytes of the text.
        for (bool found = false; low != high && low->text.size() == depth; ++low) {
            if (found || !allowed(low->token, recognition.within(at, at + depth))) continue;
            best = &*low;
            found = true;
        }
        if (at + depth == text.size()) break;
        const uint8_t byte = uint8_t(text[at + depth]);
        low = std::partition_point(
            low, high, [&](const Table::Row& row) { return uint8_t(row.text[depth]) < byte; });
        high = std::partition_point(
            low, high, [&](const Table::Row& row) { return uint8_t(row.text[depth]) == byte; });
    }
    return best;
}

std::vector<AddedTokens::Piece> AddedTokens::cut(std::string_view text, bool normalised,
                                                 const Recognition& recognition) const {
    const Table& table = normalised ? normalised_ : raw_;
    std::vector<Piece> pieces;
    size_t done = 0, steps = 0;
    Span space;  // the white space that was scanned last
    const bool none = recognition.by_byte.empty() && recognition.everywhere == Recognised::none;
    const bool looks = !none && !table.rows.empty();
    for (size_t at = 0; looks && at < text.size();) {
        const Table::Row* row = longest(table, text, at, recognition, steps);
        if (steps > kFirstSteps + kStepsPerByte * text.size()) {
            throw Error("added tokens that cannot be found in time");
        }
        if (!row) {
            ++at;
            continue;
        }
        size_t begin = at, end = at + row->text.size();
        at = end;
        const AddedToken& token = tokens_[row->token];
        if (token.single_word && !stands_alone(text, begin, end)) continue;
        if (token.takes_left) begin = std::max(done, space_before(text.substr(0, begin), done));
        if (token.takes_right) {
            if (end < space.begin || end > space.end) space = {end, space_after(text, end)};
            end = space.end;
        }
        if (done < begin) pieces.push_back({text.substr(done, begin - done), -1});
        pieces.push_back({text.substr(begin, end - begin), token.id});
        done = std::max(done, end);
    }
    if (done < text.size()) pieces.push_back({text.substr(done), -1});
    return pieces;
}

}  // namespace aerie
