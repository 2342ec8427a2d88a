// The steps of a normaliser, one after the other over the whole text.
#include "text/normalise.h"

#include <algorithm>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

// Replacing may lengthen a text; a few such steps in a row could fill the memory.
constexpr size_t kMaxGrowth = 16, kMaxMore = 64 << 10;

char highest(std::string_view labels) {
    return labels.empty() ? char(0) : *std::max_element(labels.begin(), labels.end());
}

// Neighbours of one label are normalised apart. If that differs from the whole, bytes cannot be
// attributed to a label, and all of them get the highest one.
void apply_form(std::string& text, std::string& labels, NormalForm form) {
    std::string whole = normal_form(text, form);
    std::string apart, labels_apart;
    for (size_t at = 0; at < labels.size();) {
        const size_t end = std::min(labels.find_first_not_of(labels[at], at), labels.size());
        apart += normal_form(std::string_view(text).substr(at, end - at), form);
        labels_apart.resize(apart.size(), labels[at]);
        at = end;
    }
    if (!labels.empty())
        labels = whole == apart ? labels_apart : std::string(whole.size(), highest(labels));
    text = std::move(whole);
}

struct Apply {
    std::string& text;
    std::string& labels;  // empty, or as long as the text
    Regex::Scratch& scratch;
    size_t most_bytes;

    void check_size(size_t bytes) const {
        if (bytes > most_bytes) {
            throw Error("a text of more than " + std::to_string(most_bytes) +
                        " bytes after normalisation");
        }
    }

    void operator()(NormalForm form) const { apply_form(text, labels, form); }

    void operator()(const Normaliser::Prepend& step) const {
        if (text.empty()) return;
        check_size(text.size() + step.text.size());
        text.insert(0, step.text);
        if (!labels.empty()) labels.insert(0, step.text.size(), labels.front());
    }

    void operator()(const Normaliser::Replace& step) const {
        std::vector<Span> found;
        find_all(step.pattern, text, scratch, found);
        if (found.empty()) return;
        std::string out, out_labels;
        size_t done = 0;
        const auto keep = [&](size_t end) {
            out.append(text, done, end - done);
            if (!labels.empty()) out_labels.append(labels, done, end - done);
            done = end;
        };
        for (const Span span : found) {
            check_size(out.size() + (span.begin - done) + step.content.size());
            keep(span.begin);
            out += step.content;
            if (!labels.empty()) {
                const size_t bytes = std::max<size_t>(span.end - span.begin, 1);
                out_labels.append(step.content.size(),
                                  highest(std::string_view(labels).substr(span.begin, bytes)));
            }
            done = span.end;
        }
        check_size(out.size() + (text.size() - done));
        keep(text.size());
        text = std::move(out);
        labels = std::move(out_labels);
    }

    void operator()(const Normaliser::Strip& step) const {
        size_t begin = 0, end = 0, at = 0;  // the range that is kept, and the place
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
        if (!labels.empty()) labels = labels.substr(from, to - from);
    }
};

}  // namespace

void find_all(const Pattern& pattern, std::string_view text, Regex::Scratch& scratch,
              std::vector<Span>& found) {
    if (const auto* regex = std::get_if<Regex>(&pattern)) {
        regex->find_all(text, scratch, found);
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

std::string Normaliser::apply(std::string text, std::string& labels, Regex::Scratch& scratch,
                              size_t most) const {
    for (const Step& step : steps_) std::visit(Apply{text, labels, scratch, most}, step);
    return text;
}

}  // namespace aerie
