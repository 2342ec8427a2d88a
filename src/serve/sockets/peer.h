// Asks the operating system about the other end of a socket, without reading.
#pragma once

#include <cstdint>

namespace aerie {

// Whether the connection of this socket (a handle of the system) is broken: the other end has
// answered that nobody reads what was sent. Does not block.
bool is_broken(uintptr_t socket);

}  // namespace aerie
