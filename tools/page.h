// Pages of reports: one self-contained HTML file, light and dark; no scripts.
#pragma once

#include <string>

namespace aerie {

// HTML that shows the text and does nothing else.
std::string escaped(const std::string& text);

// Everything up to and including <main>. `style`: CSS beyond that of every page.
std::string page_begin(const std::string& title, const std::string& style);
std::string page_end();

// A figure and its meaning, in a row between <div class=tiles> and </div>. Both are HTML.
std::string tile(const std::string& figure, const std::string& what);

}  // namespace aerie
