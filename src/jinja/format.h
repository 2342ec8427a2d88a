// Texts made by a pattern: '%s' % x, '{}'.format(x), and times.
#pragma once

#include <ctime>
#include <span>

#include "jinja/workspace.h"

namespace aerie::jinja {

class Evaluator;

struct Named {
    std::string_view name;
    Value value;
};

// If the pattern is a safe text, both escape the values that are put into it for HTML, and the
// result is safe. `arguments`: a tuple, a dict for %(name)s, or the only argument.
Value percent_format(Workspace& workspace, const Value& pattern, const Value& arguments);
// Replaces fields {}, {0}, {name}, {a.b[c]}, with a conversion !r and a layout such as :>8 or
// :.{places}f.
Value brace_format(Evaluator& evaluator, const Value& pattern, std::span<const Value> positional,
                   std::span<const Named> named);
// The result of Python's strftime for a time without a zone, on Linux in the C locale. Microseconds
// are 0.
Text time_text(Workspace& workspace, const Text& pattern, const std::tm& time);

}  // namespace aerie::jinja
