// Pages of reports: one HTML file, complete in itself, light and dark; no scripts.
#pragma once

#include <string>

namespace aerie {

// Text as HTML that shows it and does nothing else.
std::string escaped(const std::string& text);

// Everything up to and including <main>; `style`: more CSS than every page has.
std::string page_begin(const std::string& title, const std::string& style);
std::string page_end();

// A figure and what it is, in a row of such between <div class=tiles> and </div>. Both are HTML.
std::string tile(const std::string& figure, const std::string& what);

}  // namespace aerie
