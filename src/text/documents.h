// Files of several plain texts.
#pragma once

#include <string_view>
#include <vector>

namespace aerie {

// Splits a text file into documents at lines "---8<---". The line breaks around such a line belong
// to neither document.
std::vector<std::string_view> split_documents(std::string_view text);

}  // namespace aerie
