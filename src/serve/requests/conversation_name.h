// The name by which a client continues a conversation. It holds the conversation's ids: nothing is
// looked up, so the name means the same whatever a server keeps, and for whomever.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace aerie {

std::string conversation_name(std::span<const int> ids);  // ids are not negative
// Empty if `name` is not such a name.
std::optional<std::vector<int>> ids_of_conversation(std::string_view name);

}  // namespace aerie
