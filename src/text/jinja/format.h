// Texts by a pattern: '%s' % x, '{}'.format(x), and times.
#pragma once

#include <ctime>
#include <span>

#include "text/jinja/workspace.h"

namespace aerie::jinja {

struct Named {
    std::string_view name;
    Value value;
};

// `arguments`: a tuple, a dict for %(name)s, or the only one.
Text percent_format(Workspace& workspace, const Text& pattern, const Value& arguments);
// Fields {}, {0}, {name}, with a layout such as {:>8} or {:.2f}.
Text brace_format(Workspace& workspace, const Text& pattern, std::span<const Value> positional,
                  std::span<const Named> named);
// As Python's strftime in the C locale, for the usual letters.
Text time_text(Workspace& workspace, const Text& pattern, const std::tm& time);

}  // namespace aerie::jinja
