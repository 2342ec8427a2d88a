// The steps of a normaliser, one after the other over the whole text.
#include "text/normalise.h"

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

// Replacing may lengthen a text; a few such steps in a row could fill the memory.
constexpr size_t kMaxGrowth = 16, kMaxMore = 64 << 10;

struct Apply {
    std::string& text;
    Regex::Room& room;
    size_t most_bytes;

    void check_size(size_t bytes) const {
        if (bytes > most_bytes) {
            throw Error("a text of more than " + std::to_string(most_bytes) +
                        " bytes after normalisation");
        }
    }

    void operator()(NormalForm form) const { text = normal_form(text, form); }

    void operator()(const Normaliser::Prepend& step) const {
        if (text.empty()) return;
        check_size(text.size() + step.text.size());
        text.insert(0, step.text);
    }

    void operator()(const Normaliser::Replace& step) const {
        std::vector<Span> found;
        find_all(step.pattern, text, room, found);
        if (found.empty()) return;
        std::string out;
        size_t done = 0;
        for (const Span span : found) {
            check_size(out.size() + (span.begin - done) + step.content.size());
            out.append(text, done, span.begin - done);
            out += step.content;
            done = span.end;
        }
        check_size(out.size() + (text.size() - done));
        out.append(text, done);
        text = std::move(out);
    }

    void operator()(const Normaliser::Strip& step) const {
        size_t begin = 0, end = 0, at = 0;  // of what is kept
        bool inside = false;
        for (std::string_view rest = text; !rest.empty();) {
            const bool is_space = is_white_space(take_char(rest));
            const size_t next = text.size() - rest.size();
            if (!is_space && !inside) begin = at;
            if (!is_space) inside = true, end = next;
            at = next;
        }
        if (!inside) begin = end = step.left || step.right ? text.size() : 0;
        const size_t from = step.left ? begin : 0;
        const size_t to = step.right ? (inside ? end : from) : text.size();
        text = text.substr(from, to - from);
    }
};

}  // namespace

void find_all(const Pattern& pattern, std::string_view text, Regex::Room& room,
              std::vector<Span>& found) {
    if (const auto* regex = std::get_if<Regex>(&pattern)) {
        regex->find_all(text, room, found);
        return;
    }
    const std::string& word = std::get<std::string>(pattern);
    found.clear();
    if (word.empty()) return;
    for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + word.size())) {
        found.push_back({at, at + word.size()});
    }
}

size_t Normaliser::most_bytes(size_t bytes) {
    return kMaxMore + kMaxGrowth * bytes;
}

std::string Normaliser::apply(std::string text, Regex::Room& room, size_t most) const {
    for (const Step& step : steps_) std::visit(Apply{text, room, most}, step);
    return text;
}

}  // namespace aerie
