// A value within a width, as both of Python's ways of formatting write it.
#pragma once

#include <string_view>

#include "jinja/workspace.h"

namespace aerie::jinja {

constexpr int64_t kMaxFormatWidth = 4096;
constexpr int64_t kMaxFormatPrecision = 100;

struct Layout {
    Label label = kTemplate;  // label of the pattern, which chooses how a number is written
    char align = '\0';        // < > ^ =; '\0': the default for the value
    char sign = '-';          // + and blank are put before numbers that are not negative
    char group = '\0';        // , or _ between thousands
    bool zeros = false;       // pads with zeros after the sign, up to the width
    bool prefixed = false;    // writes 0x, 0o or 0b
    Text fill = {};           // one character
    int64_t width = 0;
    int64_t precision = -1;  // -1: the default for the type
    char type = '\0';        // a letter of either way; '\0': as str() writes the value
};

// Reads a pattern from left to right. It stops only at ASCII characters.
class Cursor {
  public:
    explicit Cursor(const Text& pattern) : pattern_(pattern) {}
    bool at_end() const { return at_ == pattern_.size; }
    char peek() const { return at_end() ? '\0' : pattern_.data[at_]; }
    Text rest() const { return pattern_.part(at_, pattern_.size - at_); }
    // These throw Fault at the end of the pattern.
    char take();
    Text take_part(size_t bytes);
    bool skip(char expected);
    // The number at this place, or `otherwise`. Throws Fault if it is greater than `limit`.
    int64_t number(int64_t limit, int64_t otherwise);
    // The text up to the next of these characters, or up to the end.
    Text until(std::string_view ends);

  private:
    const Text pattern_;
    size_t at_ = 0;
};

// Throws Fault if the value is not a number. The type is one of b c d e E f F g G i n o u x X %, or
// '\0' for a number written as str() does, but within a width.
void add_number(TextBuilder& out, Workspace& workspace, const Value& value, const Layout& layout);
void add_string(TextBuilder& out, Workspace& workspace, Text text, const Layout& layout);
// The character with this number. Throws Fault if there is none.
Text character_of(Workspace& workspace, const Value& value);
// As Python's ascii(): repr() with escapes for all characters that are not ASCII.
Text ascii_repr(Workspace& workspace, const Value& value);

}  // namespace aerie::jinja
