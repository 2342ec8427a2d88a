// The other end of a socket, by poll.
#include <poll.h>

#include "serve/sockets/peer.h"

namespace aerie {

bool is_broken(uintptr_t socket) {
    pollfd asked{};  // errors and hang-ups are reported unasked
    asked.fd = int(socket);
    return ::poll(&asked, 1, 0) > 0 && asked.revents != 0;
}

}  // namespace aerie
