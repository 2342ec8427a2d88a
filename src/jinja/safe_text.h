// Texts that are HTML already, by the rules of markupsafe's Markup: anything added to them is
// escaped.
#pragma once

#include "jinja/builtins.h"

namespace aerie::jinja {

// The text itself if it is safe; otherwise with & < > ' " escaped.
Text html_of(Workspace& workspace, const Value& value);
// The sum of two texts, of which at least one is safe.
Value safe_sum(Workspace& workspace, const Value& a, const Value& b);
// Calls a method of a safe text: arguments that become a part of it are escaped, and the texts that
// it returns are safe.
Value call_of_safe(const Builtin& method, Evaluator& evaluator, const Value& self,
                   const Arguments& arguments);
// Removes comments and tags, joins runs of white space into one space, and reads entities. The
// result is a plain text.
Text without_tags(Workspace& workspace, const Text& text);
// Reads &lt; &eacute; &#233; and the like, as Python's html.unescape does.
Text unescape_html(Workspace& workspace, const Text& text);

}  // namespace aerie::jinja
