// Turns HTML into plain text: removes comments and tags, and reads references.
#include <algorithm>
#include <vector>

#include "jinja/characters.h"
#include "jinja/entities.h"
#include "jinja/safe_text.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

// A text to which bytes are added, and from which they are removed, at its end.
class Stack {
  public:
    Stack(Workspace& workspace, const Text& source)
        : workspace_(workspace),
          source_(source),
          bytes_(workspace.memory()),
          labels_(workspace.memory()) {
        workspace.touch(source.size);
        bytes_.reserve(source.size);
        if (source.labels) labels_.reserve(source.size);
    }

    std::string_view view() const { return bytes_; }
    void add(size_t at) {
        bytes_ += source_.data[at];
        if (source_.labels) labels_.push_back(source_.labels[at]);
    }
    void drop(size_t count) {
        bytes_.resize(bytes_.size() - count);
        if (source_.labels) labels_.resize(bytes_.size());
    }
    Text text() const { return workspace_.copy(bytes_, labels_, source_.label); }

  private:
    Workspace& workspace_;
    const Text& source_;
    std::pmr::string bytes_;
    std::pmr::vector<Label> labels_;
};

// The text behind a comment may begin another comment together with the text before the first one.
Text without_comments(Workspace& workspace, const Text& text) {
    constexpr std::string_view kBegin = "<!--", kEnd = "-->";
    const std::string_view bytes = text.view();
    Stack kept(workspace, text);
    bool may_end = true;  // a later comment may still have an end
    for (size_t at = 0; at < bytes.size();) {
        kept.add(at++);
        if (!may_end || !kept.view().ends_with(kBegin)) continue;
        const std::string_view rest = bytes.substr(at);
        // The end may share dashes with the beginning.
        size_t end = rest.starts_with(">") ? 1 : rest.starts_with("->") ? 2 : 0;
        if (end == 0) {
            const size_t found = rest.find(kEnd);
            may_end = found != rest.npos;
            if (may_end) end = found + kEnd.size();
        }
        if (!may_end) continue;
        kept.drop(kBegin.size());
        at += end;
    }
    return kept.text();
}

Text without_brackets(Workspace& workspace, const Text& text) {
    TextBuilder kept(workspace);
    size_t done = 0;
    while (done < text.size) {
        const size_t begin = std::min<size_t>(text.view().find('<', done), text.size);
        const size_t end = text.view().find('>', begin);
        if (end == std::string_view::npos) break;
        kept.add(text.part(done, begin - done));
        done = end + 1;
    }
    kept.add(text.part(done, text.size - done));
    return kept.text();
}

// The number of digits of this base in `rest` from `at` on.
size_t digits_at(std::string_view rest, size_t at, bool hexadecimal) {
    size_t end = at;
    const auto is_one = [&](char c) {
        return (c >= '0' && c <= '9') || (hexadecimal && (c | 0x20) >= 'a' && (c | 0x20) <= 'f');
    };
    while (end < rest.size() && is_one(rest[end])) ++end;
    return end - at;
}

struct Reference {
    size_t size = 0;  // bytes after &; 0: there is no reference
    std::string text;
};

// `rest` begins with #.
Reference numbered(std::string_view rest) {
    const bool hexadecimal = rest.size() > 1 && (rest[1] | 0x20) == 'x';
    const size_t begin = hexadecimal ? 2 : 1, count = digits_at(rest, begin, hexadecimal);
    if (count == 0) return {};
    constexpr uint32_t kBeyond = 0x110000;
    uint32_t code = 0;
    for (const char c : rest.substr(begin, count)) {
        const auto digit = uint32_t(c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
        code = std::min(kBeyond, code * (hexadecimal ? 16 : 10) + digit);
    }
    const size_t size = begin + count;
    return {size + (rest.substr(size).starts_with(';') ? 1 : 0), numbered_character(code)};
}

// Tries everything that may be a name first, then shorter prefixes of it.
Reference named(std::string_view rest) {
    constexpr size_t kMaxChars = 32;
    constexpr std::string_view kEnds = "\t\n\f <&#;";
    size_t size = 0;
    for (size_t count = 0; count < kMaxChars && size < rest.size(); ++count) {
        if (kEnds.find(rest[size]) != kEnds.npos) break;
        size += char_size(rest[size]);
    }
    if (size == 0) return {};
    if (rest.substr(size).starts_with(';')) ++size;
    for (; size > 1; --size) {
        if (const std::string* text = entity_text(rest.substr(0, size))) return {size, *text};
    }
    return {};
}

}  // namespace

Text unescape_html(Workspace& workspace, const Text& text) {
    constexpr size_t kCost = 128;  // for each reference, however short
    TextBuilder out(workspace);
    size_t done = 0;
    for (size_t at = 0; at < text.size; ++at) {
        if (text.data[at] != '&') continue;
        workspace.touch(kCost);
        const std::string_view rest = text.view().substr(at + 1);
        const Reference found = rest.starts_with('#') ? numbered(rest) : named(rest);
        if (found.size == 0) continue;
        out.add(text.part(done, at - done));
        Label label = text.label;
        if (text.labels)
            label = *std::max_element(text.labels + at, text.labels + at + 1 + found.size);
        out.add(found.text, label);
        at += found.size;
        done = at + 1;
    }
    out.add(text.part(done, text.size - done));
    return out.text();
}

Text without_tags(Workspace& workspace, const Text& text) {
    const Text bare = without_brackets(workspace, without_comments(workspace, text));
    const std::vector<Text> words = split(workspace, bare, std::nullopt, -1);
    return unescape_html(workspace, joined(workspace, words, text_of(" ", bare.label)));
}

}  // namespace aerie::jinja
