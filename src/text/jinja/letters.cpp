// Texts character by character: cases, padding, escapes.
#include <algorithm>

#include "core/utf8.h"
#include "text/jinja/characters.h"
#include "text/jinja/strings.h"

namespace aerie::jinja {
namespace {

// Puts `change(character)` for every character, of the label of the character's first byte.
Text mapped(Workspace& workspace, const Text& text, auto change) {
    TextBuilder result(workspace);
    for (size_t at = 0; at < text.size;) {
        const size_t size = char_size(text.data[at]);
        const std::string by = change(first_char(text.view().substr(at, size)));
        Label label = text.label_at(at);
        for (size_t i = 1; i < size; ++i) label = std::max(label, text.label_at(at + i));
        result.add(by, label);
        at += size;
    }
    return result.text();
}

std::string same(char32_t code) {
    std::string text;
    append_char(text, code);
    return text;
}

bool is_cased_letter(char32_t code) {
    return is_upper(code) || is_lower(code) || upper_of(code) != lower_of(code);
}

}  // namespace

Text change_case(Workspace& workspace, const Text& text, Case to) {
    bool after_letter = false;  // of any case
    bool first = true;
    return mapped(workspace, text, [&](char32_t code) {
        const bool begins = to == Case::title ? !after_letter : first;
        after_letter = is_cased_letter(code);
        first = false;
        switch (to) {
            case Case::upper:
                return upper_of(code);
            case Case::lower:
                return lower_of(code);
            case Case::swapped:
                return is_upper(code)   ? lower_of(code)
                       : is_lower(code) ? upper_of(code)
                                        : same(code);
            default:
                return begins ? title_of(code) : lower_of(code);
        }
    });
}

Text title_words(Workspace& workspace, const Text& text) {
    constexpr std::u32string_view kBefore = U"-({[<";
    bool begins = true;
    return mapped(workspace, text, [&](char32_t code) {
        const bool separates = is_space(code) || kBefore.find(code) != kBefore.npos;
        const bool first = begins && !separates;
        begins = separates;
        return first ? upper_of(code) : lower_of(code);
    });
}

Text padded(Workspace& workspace, const Text& text, int64_t left, int64_t right,
            std::string_view fill) {
    TextBuilder result(workspace);
    for (int64_t i = 0; i < left; ++i) result.add(fill, text.label);
    result.add(text);
    for (int64_t i = 0; i < right; ++i) result.add(fill, text.label);
    return result.text();
}

Text escape_html(Workspace& workspace, const Text& text) {
    return mapped(workspace, text, [&](char32_t code) -> std::string {
        switch (code) {
            case '&':
                return "&amp;";
            case '<':
                return "&lt;";
            case '>':
                return "&gt;";
            case '\'':
                return "&#39;";
            case '"':
                return "&#34;";
            default:
                return same(code);
        }
    });
}

bool all_of(Workspace& workspace, const Text& text, const std::function<bool(char32_t)>& holds) {
    workspace.touch(text.size);
    for (size_t at = 0; at < text.size; at += char_size(text.data[at])) {
        if (!holds(first_char(text.view().substr(at)))) return false;
    }
    return text.size > 0;
}

bool is_cased(Workspace& workspace, const Text& text, Case as) {
    bool any = false;
    const bool no_other = all_of(workspace, text, [&](char32_t code) {
        const bool fits = as == Case::upper ? is_upper(code) : is_lower(code);
        any = any || fits;
        return fits || !is_cased_letter(code);
    });
    return any && no_other;
}

}  // namespace aerie::jinja
