// Python's string methods on texts. Every byte of a result keeps the label that it had.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "jinja/workspace.h"

namespace aerie::jinja {

// Python's methods upper, lower, title, capitalize, swapcase, casefold.
enum class Case : uint8_t { upper, lower, title, capitalized, swapped, folded };
Text change_case(Workspace& workspace, const Text& text, Case to);
// As the filter `title`, which defines words in its own way.
Text title_words(Workspace& workspace, const Text& text);

// Removes the characters of `chars` (white space, if none are given) at the chosen ends.
Text strip(Workspace& workspace, const Text& text, std::optional<std::string_view> chars, bool left,
           bool right);

// Parts between separators, or between white space; at most `limit` cuts, from the left or the
// right.
std::vector<Text> split(Workspace& workspace, const Text& text,
                        std::optional<std::string_view> separator, int64_t limit);
std::vector<Text> split_from_right(Workspace& workspace, const Text& text,
                                   std::optional<std::string_view> separator, int64_t limit);
std::vector<Text> split_lines(Workspace& workspace, const Text& text, bool keep_ends);

// Replaces the first `limit` places (all, if negative).
Text replace(Workspace& workspace, const Text& text, std::string_view old, const Text& by,
             int64_t limit);
// The number of places of `part` that do not overlap.
int64_t count_of(Workspace& workspace, const Text& text, std::string_view part);

// Characters [begin, end) of the text.
Text characters(Workspace& workspace, const Text& text, size_t begin, size_t end);
// Every `step`-th character (0: Fault), with the bounds of Python's slices.
Text slice(Workspace& workspace, const Text& text, std::optional<int64_t> start,
           std::optional<int64_t> stop, int64_t step);
// The places that a slice of a sequence of `size` takes, in order.
struct SliceRange {
    int64_t first = 0;
    size_t count = 0;
    int64_t step = 1;
    size_t at(size_t i) const { return size_t(first + int64_t(i) * step); }
};
SliceRange slice_range(size_t size, std::optional<int64_t> start, std::optional<int64_t> stop,
                       int64_t step);

// The text with `left` and `right` times the fill character around it; these get the text's label.
Text padded(Workspace& workspace, const Text& text, int64_t left, int64_t right,
            std::string_view fill);
Text joined(Workspace& workspace, const std::vector<Text>& parts, const Text& between);
// Writes & < > ' " as HTML does.
Text escape_html(Workspace& workspace, const Text& text);
// Whether the text is not empty and `holds` for all its characters.
bool all_of(Workspace& workspace, const Text& text, const std::function<bool(char32_t)>& holds);
bool is_cased(Workspace& workspace, const Text& text, Case as);  // str.isupper, str.islower
bool is_titled(Workspace& workspace, const Text& text);          // str.istitle

}  // namespace aerie::jinja
