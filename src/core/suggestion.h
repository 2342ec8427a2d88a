// The name that a mistyped word was meant to be.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aerie {

// "; did you mean NAME?" for the name that is most like `word`; empty if none is.
std::string suggestion(std::string_view word, const std::vector<std::string>& names);

}  // namespace aerie
