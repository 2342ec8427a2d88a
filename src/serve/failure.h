// Tells a client that its request failed, even if there is little memory left to do so.
#pragma once

#include <functional>
#include <string>

#include "serve/exchange.h"

namespace aerie {

using Log = std::function<void(const std::string&)>;  // writes a line for the server's operator

enum class ReplyState { none, stream, whole };  // the form in which a reply has begun

// Called in a catch block, whatever was thrown. A Problem is sent as it is; any other exception is
// logged, and the client learns only that the server failed. An error during a stream is sent as
// one of its events. If memory is missing, this tries again for a second, while other threads may
// free some. A reply that cannot be ended in any other way is abandoned.
void tell_failure(Exchange& exchange, ReplyState state, const Log& log) noexcept;

}  // namespace aerie
