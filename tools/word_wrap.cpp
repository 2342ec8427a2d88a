#include "word_wrap.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "core/utf8.h"

namespace aerie {

namespace {

void append(std::vector<WordWrap::Piece>& pieces, std::string_view text, Marks marks) {
    if (pieces.empty() || pieces.back().marks != marks)
        pieces.push_back({.text = "", .marks = marks});
    pieces.back().text += text;
}

int columns_of_char(char32_t c) {
    return c == '\t' ? 8 : utf8proc_charwidth(utf8proc_int32_t(c));
}

}  // namespace

std::vector<WordWrap::Piece> WordWrap::put(std::string_view text, Marks marks, int width) {
    width_ = width;
    while (!text.empty()) {
        const std::string_view before = text;
        const char32_t c = take_char(text);
        const std::string_view bytes = before.substr(0, before.size() - text.size());
        if (c == ' ' || c == '\n' || width == 0) {
            show_word();
            // At the end of a full line a space would begin the next one, so a line break
            // replaces it.
            const bool breaks = c == '\n' || (width > 0 && column_ + 1 > width);
            column_ = breaks ? 0 : column_ + 1;
            append(shown_, breaks ? "\n" : bytes, marks);
        } else {
            append(word_, bytes, marks);
            word_columns_ += columns_of_char(c);
            // A word wider than the line is passed on; the terminal breaks it.
            if (word_columns_ > width) show_word();
        }
    }
    return std::exchange(shown_, {});
}

std::vector<WordWrap::Piece> WordWrap::end() {
    show_word();
    column_ = 0;
    return std::exchange(shown_, {});
}

void WordWrap::show_word() {
    if (width_ > 0 && column_ > 0 && column_ + word_columns_ > width_ && word_columns_ <= width_) {
        // The space before the word stays where it is: at the end of the line it is not seen.
        append(shown_, "\n", {});
        column_ = 0;
    }
    for (const Piece& piece : std::exchange(word_, {})) append(shown_, piece.text, piece.marks);
    column_ = width_ > 0 ? (column_ + word_columns_ - 1) % width_ + 1 : 0;
    word_columns_ = 0;
}

std::string last_columns(std::string_view text, int columns) {
    constexpr std::string_view kDots = "...";
    int width = 0;
    for (std::string_view rest = text; !rest.empty();) width += columns_of_char(take_char(rest));
    if (columns == 0 || width <= columns) return std::string(text);
    const std::string_view dots = kDots.substr(0, size_t(std::min(columns - 1, 3)));
    while (width + int(dots.size()) > columns) width -= columns_of_char(take_char(text));
    return std::string(dots) + std::string(text);
}

}  // namespace aerie
