// The style that all pages share.
#include "page.h"

#include "core/utf8.h"

namespace aerie {

namespace {

constexpr const char* kStyle = R"css(
:root{--paper:#fbfaf7;--ink:#1d2327;--soft:#6b7480;--line:#dfe3e6;--card:#fff;
--first:#2f6f8f;--second:#e0a03c;--third:#3f7a3e;--fourth:#8a5a9e;--rest:#a8b0b8;--accent:#b4472e}
@media(prefers-color-scheme:dark){:root{--paper:#14181c;--ink:#e8eaec;--soft:#95a0ab;--line:#2c343b;
--card:#1b2127;--first:#5fa8cb;--second:#e3b25e;--third:#86b885;--fourth:#b98ccc;--rest:#626d78;
--accent:#ea8066}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}
main{max-width:60rem;margin:0 auto;padding:2.5rem 1.25rem 4rem}
h1{font-size:1.9rem;line-height:1.2;margin:0}h2{font-size:1.15rem;margin:2.6rem 0 .3rem}
p{margin:.3rem 0;max-width:46rem}.soft{color:var(--soft)}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(12rem,1fr));gap:.9rem;margin:1.6rem 0 0}
.tile{background:var(--card);border:1px solid var(--line);border-radius:.6rem;padding:.8rem 1rem}
.tile b{display:block;font-size:1.7rem;line-height:1.25;font-weight:650}
.tile span{color:var(--soft);font-size:.86rem;display:block}
figure{margin:.6rem 0 0;background:var(--card);border:1px solid var(--line);border-radius:.6rem;
padding:.8rem;overflow-x:auto}svg{display:block;width:100%;min-width:34rem;height:auto}
svg text{fill:var(--soft);font:13px system-ui,sans-serif}svg text.strong{fill:var(--ink)}
.grid{stroke:var(--line)}.curve{fill:none;stroke:var(--first);stroke-width:2.5}
.dot{fill:var(--first)}
.reference{fill:none;stroke:var(--accent);stroke-width:1.5;stroke-dasharray:5 5}
.floor{fill:none;stroke:var(--soft);stroke-width:1.5;stroke-dasharray:2 4}
text.accent{fill:var(--accent)!important}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.34rem .5rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th{color:var(--soft);font-weight:500;font-size:.86rem}th:first-child,td:first-child{text-align:left;white-space:normal}
)css";

}  // namespace

std::string escaped(const std::string& text) {
    std::string result;
    for (char c : printable(text, "\n\t", "\xEF\xBF\xBD")) {
        if (c == '<')
            result += "&lt;";
        else if (c == '>')
            result += "&gt;";
        else if (c == '&')
            result += "&amp;";
        else if (c == '"')
            result += "&quot;";
        else
            result += c;
    }
    return result;
}

std::string page_begin(const std::string& title, const std::string& style) {
    return "<!doctype html>\n<html lang=en><meta charset=utf-8>\n<meta name=viewport "
           "content=\"width=device-width\">\n<title>" +
           title + "</title>\n<style>" + kStyle + style + "</style>\n<main>\n";
}

std::string page_end() {
    return "</main></html>\n";
}

std::string tile(const std::string& figure, const std::string& what) {
    return "<div class=tile><b>" + figure + "</b><span>" + what + "</span></div>\n";
}

}  // namespace aerie
