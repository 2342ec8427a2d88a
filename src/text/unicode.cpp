// Categories, decompositions and compositions are utf8proc's.
#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "core/utf8.h"

namespace aerie {
namespace {

// Circled and squared letters are of category So, but they are Alphabetic.
bool is_letter_like_symbol(char32_t code) {
    return (code >= 0x24B6 && code <= 0x24E9) || (code >= 0x1F130 && code <= 0x1F149) ||
           (code >= 0x1F150 && code <= 0x1F169) || (code >= 0x1F170 && code <= 0x1F189);
}

int combining_class(utf8proc_int32_t code) {
    return utf8proc_get_property(code)->combining_class;
}

// Sorts marks by their class, in each run between characters of class 0. utf8proc's own sort is
// quadratic in the length of a run.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
    const auto is_mark = [](utf8proc_int32_t code) { return combining_class(code) != 0; };
    for (auto at = codes.begin(); at != codes.end();) {
        const auto begin = std::find_if(at, codes.end(), is_mark);
        at = std::find_if_not(begin, codes.end(), is_mark);
        std::stable_sort(begin, at, [](utf8proc_int32_t a, utf8proc_int32_t b) {
            return combining_class(a) < combining_class(b);
        });
    }
}

}  // namespace

bool is_white_space(char32_t code) {
    return (code >= 0x09 && code <= 0x0D) || code == 0x20 || code == 0x85 || code == 0xA0 ||
           code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
           code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_word_character(char32_t code) {
    switch (utf8proc_category(utf8proc_int32_t(code))) {
        case UTF8PROC_CATEGORY_LU:
        case UTF8PROC_CATEGORY_LL:
        case UTF8PROC_CATEGORY_LT:
        case UTF8PROC_CATEGORY_LM:
        case UTF8PROC_CATEGORY_LO:
        case UTF8PROC_CATEGORY_MN:
        case UTF8PROC_CATEGORY_MC:
        case UTF8PROC_CATEGORY_ME:
        case UTF8PROC_CATEGORY_ND:
        case UTF8PROC_CATEGORY_NL:
        case UTF8PROC_CATEGORY_PC:
            return true;
        default:
            return code == 0x200C || code == 0x200D || is_letter_like_symbol(code);
    }
}

std::string normal_form(std::string_view text, NormalForm form) {
    if (std::all_of(text.begin(), text.end(), [](char c) { return uint8_t(c) < 0x80; })) {
        return std::string(text);
    }
    const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
    const bool composed = form == NormalForm::nfc || form == NormalForm::nfkc;
    const auto decompose = utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                             (compatible ? UTF8PROC_COMPAT : 0));
    std::vector<utf8proc_int32_t> codes;
    codes.reserve(text.size());
    while (!text.empty()) {
        constexpr utf8proc_ssize_t kLongest = 64;  // U+FDFA becomes 18 characters
        utf8proc_int32_t parts[kLongest];
        int boundary = 0;
        const utf8proc_ssize_t count = utf8proc_decompose_char(
            utf8proc_int32_t(take_char(text)), parts, kLongest, decompose, &boundary);
        if (count < 0 || count > kLongest) throw Error("text cannot be normalised");
        codes.insert(codes.end(), parts, parts + count);
    }
    order_marks(codes);
    if (composed) {
        const utf8proc_ssize_t count =
            utf8proc_normalize_utf32(codes.data(), utf8proc_ssize_t(codes.size()),
                                     utf8proc_option_t(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
        if (count < 0) throw Error("text cannot be normalised");
        codes.resize(size_t(count));
    }
    std::string out;
    for (const utf8proc_int32_t code : codes) append_char(out, char32_t(code));
    return out;
}

}  // namespace aerie
