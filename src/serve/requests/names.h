// Checks values that are given when the server starts and that clients send or receive: a key,
// hosts, origins, the name of the model. A value that no client could ever send is refused then,
// instead of never matching.
#pragma once

#include <string>
#include <string_view>

namespace aerie {

// Each function returns what is wrong with the value, to follow the place where it was given in an
// error line. It returns an empty string if nothing is wrong.

// A key is sent behind "Bearer " in a header, whose ends are trimmed. The message does not repeat
// the key.
std::string fault_of_key(std::string_view key);
// A value of Host: NAME[:PORT] or [ADDRESS][:PORT] (RFC 9110, 7.2).
std::string fault_of_host(std::string_view host);
// A value of Origin, as browsers write it (RFC 6454, 6.2): SCHEME://HOST[:PORT], in lower case and
// without the scheme's own port. It is not "null", which any page can send.
std::string fault_of_origin(std::string_view origin);
// The name of a model.
std::string fault_of_model_name(std::string_view name);

}  // namespace aerie
