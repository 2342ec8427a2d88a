// Python's string methods on texts: every byte of a result keeps the label that it had.
#pragma once

#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "text/jinja/workspace.h"

namespace aerie::jinja {

// Each is one of Python's methods: upper, lower, title, capitalize, swapcase, casefold.
enum class Case : uint8_t { upper, lower, title, capitalized, swapped, folded };
Text change_case(Workspace& workspace, const Text& text, Case to);
// As the filter `title`, which has its own idea of words.
Text title_words(Workspace& workspace, const Text& text);

// Without the characters of `chars` (white space, if none are given) at those ends.
Text strip(Workspace& workspace, const Text& text, std::optional<std::string_view> chars, bool left,
           bool right);

// Parts between `separator`, or between white space; at most `limit` cuts, from the left or right.
std::vector<Text> split(Workspace& workspace, const Text& text,
                        std::optional<std::string_view> separator, int64_t limit);
std::vector<Text> split_from_right(Workspace& workspace, const Text& text,
                                   std::optional<std::string_view> separator, int64_t limit);
std::vector<Text> split_lines(Workspace& workspace, const Text& text, bool keep_ends);

// The first `limit` places (all, if negative).
Text replace(Workspace& workspace, const Text& text, std::string_view old, const Text& by,
             int64_t limit);
// Places of `part` that do not overlap.
int64_t count_of(Workspace& workspace, const Text& text, std::string_view part);

// Characters [begin, end) of it.
Text characters(Workspace& workspace, const Text& text, size_t begin, size_t end);
// Every `step`-th character (0: Fault), from and to like Python's slices.
Text slice(Workspace& workspace, const Text& text, std::optional<int64_t> start,
           std::optional<int64_t> stop, int64_t step);
// What a slice of a sequence of `size` takes, in order.
struct SliceRange {
    int64_t first = 0;
    size_t count = 0;
    int64_t step = 1;
    size_t at(size_t i) const { return size_t(first + int64_t(i) * step); }
};
SliceRange slice_range(size_t size, std::optional<int64_t> start, std::optional<int64_t> stop,
                       int64_t step);

// With `left` and `right` times the fill character around it, which counts as the text's.
Text padded(Workspace& workspace, const Text& text, int64_t left, int64_t right,
            std::string_view fill);
Text joined(Workspace& workspace, const std::vector<Text>& parts, const Text& between);
// & < > ' " as HTML has them.
Text escape_html(Workspace& workspace, const Text& text);
// Not empty and all characters are so.
bool all_of(Workspace& workspace, const Text& text, const std::function<bool(char32_t)>& holds);
bool is_cased(Workspace& workspace, const Text& text, Case as);  // str.isupper, str.islower
bool is_titled(Workspace& workspace, const Text& text);          // str.istitle

}  // namespace aerie::jinja
