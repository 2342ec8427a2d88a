// Values as text: as Python's str and repr have them, and as JSON.
#pragma once

#include <string>

#include "text/jinja/workspace.h"

namespace aerie::jinja {

// What {{ value }} prints; a string itself.
Text to_text(Workspace& workspace, const Value& value);
Text to_repr(Workspace& workspace, const Value& value);  // a string in quotes
// Adds what to_text gives.
void print(TextBuilder& out, Workspace& workspace, const Value& value);

std::string repr_of(double real);  // 1.0, 1e+20, nan

// json.dumps; transformers' filter has the same arguments, and keeps what is no ASCII.
struct JsonStyle {
    bool ascii = false;
    bool sorted = false;
    bool indented = false;
    Text indent;  // of a level
    Text comma, colon;
};
Text to_json(Workspace& workspace, const Value& value, const JsonStyle& style);

}  // namespace aerie::jinja
