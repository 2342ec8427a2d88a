// Values as text, as Python's str and repr write them, and as JSON.
#pragma once

#include <string>

#include "jinja/workspace.h"

namespace aerie::jinja {

// The text that {{ value }} prints; for a string the string itself.
Text to_text(Workspace& workspace, const Value& value);
Text to_repr(Workspace& workspace, const Value& value);  // a string in quotes
// Appends the result of to_text.
void print(TextBuilder& out, Workspace& workspace, const Value& value);

std::string repr_of(double real);  // 1.0, 1e+20, nan

// json.dumps; transformers' filter has the same arguments, and by default does not escape non-ASCII
// characters.
struct JsonStyle {
    bool ascii = false;
    bool sorted = false;
    bool indented = false;
    Text indent;  // for one level
    Text comma, colon;
};
Text to_json(Workspace& workspace, const Value& value, const JsonStyle& style);

}  // namespace aerie::jinja
