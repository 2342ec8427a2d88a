# The chat page as one HTML text in a source file, with the hashes of its style and script: browsers run only what
# matches them.
set(PAGE_PARTS page.html page.css)
set(PAGE_SCRIPTS source.js highlight.js formulas.js thoughts.js markdown_inline.js markdown_leaves.js markdown.js server.js
  state.js history.js answer_view.js model.js chat.js talks.js race.js beside.js main.js)

# A hash in the form of the header: three hexadecimal digits become two of base64.
function(base64_sha256 name text)
  set(alphabet ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 hex "${text}")
  set(all)
  foreach(begin RANGE 0 63 3)
    string(SUBSTRING ${hex}00 ${begin} 3 digits)
    math(EXPR high "0x${digits} >> 6")
    math(EXPR low "0x${digits} & 63")
    string(SUBSTRING ${alphabet} ${high} 1 first)
    string(SUBSTRING ${alphabet} ${low} 1 second)
    string(APPEND all ${first}${second})
  endforeach()
  string(SUBSTRING ${all} 0 43 all)  # of the last digit and two zeros, one counts
  set(${name} ${all}= PARENT_SCOPE)
endfunction()

foreach(part ${PAGE_PARTS} ${PAGE_SCRIPTS})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_LIST_DIR}/page/${part})
endforeach()
file(READ ${CMAKE_CURRENT_LIST_DIR}/page/page.html CHAT_PAGE)
file(READ ${CMAKE_CURRENT_LIST_DIR}/page/page.css STYLE)
set(SCRIPT "\"use strict\";\n{\n")
foreach(part ${PAGE_SCRIPTS})
  file(READ ${CMAKE_CURRENT_LIST_DIR}/page/${part} text)
  string(APPEND SCRIPT "${text}")
endforeach()
string(APPEND SCRIPT "}\n")
base64_sha256(STYLE_HASH "${STYLE}")
base64_sha256(SCRIPT_HASH "${SCRIPT}")
string(REPLACE "@PAGE_STYLE@" "${STYLE}" CHAT_PAGE "${CHAT_PAGE}")
string(REPLACE "@PAGE_SCRIPT@" "${SCRIPT}" CHAT_PAGE "${CHAT_PAGE}")
# One literal per line: some compilers refuse a literal as long as the whole page.
string(REPLACE "\n" "\n)aerie-page\"\n    R\"aerie-page(" CHAT_PAGE "${CHAT_PAGE}")
set(CHAT_PAGE "    R\"aerie-page(${CHAT_PAGE})aerie-page\"")
configure_file(${CMAKE_CURRENT_LIST_DIR}/page.cpp.in ${CMAKE_CURRENT_BINARY_DIR}/serve/page.cpp @ONLY)
