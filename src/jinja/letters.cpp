// Changes texts character by character: cases, padding, escapes.
#include <algorithm>
#include <utility>

#include "core/utf8.h"
#include "jinja/characters.h"
#include "jinja/strings.h"

namespace aerie::jinja {
namespace {

// Replaces every character by `change(character, its byte)`, which keeps the character's label.
Text mapped(Workspace& workspace, const Text& text, auto change) {
    TextBuilder result(workspace);
    for (size_t at = 0; at < text.size;) {
        const size_t size = char_size(text.data[at]);
        const std::string by = change(first_char(text.view().substr(at, size)), at);
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

// Whether the capital sigma at this byte ends a word: a cased letter precedes it and none follows
// it, with any marks and apostrophes in between. (Unicode, table 3-17, Final_Sigma.)
bool is_final_sigma(std::string_view text, size_t at) {
    std::string_view before = text.substr(0, at), after = text.substr(at + char_size(text[at]));
    char32_t code = 0;
    const auto step_back = [&] {
        code = last_char(before);
        do before.remove_suffix(1);
        while (!before.empty() && (text[before.size()] & 0xC0) == 0x80);
    };
    do {
        if (before.empty()) return false;
        step_back();
    } while (is_case_ignorable(code));
    if (!is_cased(code)) return false;
    while (!after.empty()) {
        code = first_char(after);
        if (!is_case_ignorable(code)) return !is_cased(code);
        after.remove_prefix(char_size(after[0]));
    }
    return true;
}

std::string lower_at(const Text& text, char32_t code, size_t at) {
    constexpr char32_t kSigma = 0x3A3;
    constexpr const char* kFinalSigma = "\xCF\x82";
    if (code == kSigma && is_final_sigma(text.view(), at)) return kFinalSigma;
    return lower_of(code);
}

}  // namespace

Text change_case(Workspace& workspace, const Text& text, Case to) {
    bool after_letter = false;  // in any case
    bool first = true;
    return mapped(workspace, text, [&](char32_t code, size_t at) {
        const bool begins = to == Case::title ? !after_letter : first;
        after_letter = is_cased(code);
        first = false;
        switch (to) {
            case Case::upper:
                return upper_of(code);
            case Case::lower:
                return lower_at(text, code, at);
            case Case::folded:
                return folded(code);
            case Case::swapped:
                return is_upper(code)   ? lower_at(text, code, at)
                       : is_lower(code) ? upper_of(code)
                                        : same(code);
            default:
                return begins ? title_of(code) : lower_at(text, code, at);
        }
    });
}

Text title_words(Workspace& workspace, const Text& text) {
    constexpr std::u32string_view kBefore = U"-({[<";
    const auto separates = [&](size_t at) {
        const char32_t code = first_char(text.view().substr(at));
        return is_space(code) || kBefore.find(code) != kBefore.npos;
    };
    TextBuilder result(workspace);
    for (size_t at = 0; at < text.size;) {
        const size_t begin = at, rest = at + char_size(text.data[at]);
        at = rest;
        if (separates(begin)) {
            result.add(text.part(begin, rest - begin));
            continue;
        }
        while (at < text.size && !separates(at)) at += char_size(text.data[at]);
        result.add(change_case(workspace, text.part(begin, rest - begin), Case::upper));
        result.add(change_case(workspace, text.part(rest, at - rest), Case::lower));
    }
    return result.text();
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
    return mapped(workspace, text, [](char32_t code, size_t) -> std::string {
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
        return fits || !is_cased(code);
    });
    return any && no_other;
}

bool is_titled(Workspace& workspace, const Text& text) {
    bool any = false, after_letter = false;
    const bool all_fit = all_of(workspace, text, [&](char32_t code) {
        const bool was_after_letter = std::exchange(after_letter, is_cased(code));
        any = any || after_letter;
        return !after_letter || is_lower(code) == was_after_letter;
    });
    return any && all_fit;
}

}  // namespace aerie::jinja
