// A value within a width, as both of Python's ways to format write it.
#pragma once

#include <string_view>

#include "text/jinja/workspace.h"

namespace aerie::jinja {

constexpr int64_t kMaxFormatWidth = 4096;
constexpr int64_t kMaxFormatPrecision = 100;

struct Layout {
    Label label = kTemplate;  // of the pattern: it chooses how a number is written
    char align = '\0';        // < > ^ =; '\0': as is usual for the value
    char sign = '-';          // + and blank are put before what is not below 0
    char group = '\0';        // , or _ between thousands
    bool zeros = false;       // after the sign, up to the width
    bool prefixed = false;    // 0x and its like
    Text fill = {};           // one character
    int64_t width = 0;
    int64_t precision = -1;  // -1: as is usual for the type
    char type = '\0';        // a letter of either way; '\0': as str() writes it
};

// Reads a pattern from left to right, by bytes that are ASCII.
class Cursor {
  public:
    explicit Cursor(const Text& pattern) : pattern_(pattern) {}
    bool at_end() const { return at_ == pattern_.size; }
    char peek() const { return at_end() ? '\0' : pattern_.data[at_]; }
    Text rest() const { return pattern_.part(at_, pattern_.size - at_); }
    // Throw Fault at the end.
    char take();
    Text take_part(size_t bytes);
    bool skip(char expected);
    // The number that stands here, or `otherwise`. Throws Fault if it is greater than `limit`.
    int64_t number(int64_t limit, int64_t otherwise);
    // The text before the next of these characters, or the end.
    Text until(std::string_view ends);

  private:
    const Text pattern_;
    size_t at_ = 0;
};

// Throws Fault if the value is no number. The type is one of b c d e E f F g G i n o u x X %, or
// '\0' of a number that is written as str() does, but within a width.
void add_number(TextBuilder& out, Workspace& workspace, const Value& value, const Layout& layout);
void add_string(TextBuilder& out, Workspace& workspace, Text text, const Layout& layout);
// The character that has this number. Throws Fault if there is none.
Text character_of(Workspace& workspace, const Value& value);
// The text is that of Python's ascii(): repr() with escapes for all that is not ASCII.
Text ascii_repr(Workspace& workspace, const Value& value);

}  // namespace aerie::jinja
