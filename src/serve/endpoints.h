// The table of everything that clients can ask of the server.
#pragma once

#include <span>

#include "serve/requests/gate.h"

namespace aerie {

std::span<const Endpoint> endpoints();

}  // namespace aerie
