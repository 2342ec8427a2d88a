// The messages of a chat, as clients write them.
#pragma once

#include <string>
#include <vector>

#include "io/json.h"

namespace aerie {

// A list of objects with role and content, both strings, and what else templates may use of a
// message (`reasoning_content`, `name`). `value` is a request's member "messages", or null. Adds
// the paths of members that are not known to `ignored`. Throws Problem.
Json messages_of(const Json* value, std::vector<std::string>& ignored);

}  // namespace aerie
