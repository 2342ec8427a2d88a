// Texts that are HTML already, by the rules of markupsafe's Markup: what is put to them is escaped.
#pragma once

#include "text/jinja/builtins.h"

namespace aerie::jinja {

// A text's own, if it is safe; else with & < > ' " escaped.
Text html_of(Workspace& workspace, const Value& value);
// One of the two texts is safe.
Value safe_sum(Workspace& workspace, const Value& a, const Value& b);
// A method of a safe text: arguments that become a part of it are escaped, and texts that it gives
// are safe.
Value call_of_safe(const Builtin& method, Evaluator& evaluator, const Value& self,
                   const Arguments& arguments);
// Without comments and tags, spaces made one, and entities read. The result is a plain text.
Text without_tags(Workspace& workspace, const Text& text);
// &lt; &eacute; &#233; and their like, as Python's html.unescape reads them.
Text unescape_html(Workspace& workspace, const Text& text);

}  // namespace aerie::jinja
