// The other end of a socket on Windows, where it is not asked.
#include "serve/sockets/peer.h"

namespace aerie {

// A client that has gone is noticed when the reply is sent.
bool is_broken(uintptr_t) {
    return false;
}

}  // namespace aerie
