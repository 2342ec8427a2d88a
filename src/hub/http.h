// GET requests over HTTP and HTTPS, by libcurl: proxies, certificates and redirections are its
// affair.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/error.h"

namespace aerie::hub {

// The server could not be reached, or ended in the middle of an answer: worth another try.
struct ConnectionLost : Error {
    using Error::Error;
};

struct Reply {
    long status = 0;
    std::map<std::string, std::string> headers;  // names in small letters; of the last reply
    std::string text;  // the body, as far as no `take` got it; at most 16 MiB
};

class HttpClient {
  public:
    // `token` is sent to the hosts that requests name, and not to those that they are redirected
    // to.
    explicit HttpClient(std::string token);
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    // `take` gets the pieces of a body with status 200 (from the first byte) or 206 (from byte
    // `from`), and the reply's status and headers. Throws ConnectionLost, Error, and what `take`
    // throws.
    using Take = std::function<void(const Reply& reply, std::string_view piece)>;
    Reply get(const std::string& url, uint64_t from = 0, const Take& take = {});

    // Called once in a request that has had no byte for some seconds; may be empty.
    std::function<void()> on_silence;

  private:
    struct Transfer;
    std::string token_;
    void* curl_;  // CURL*, which keeps its connections
};

}  // namespace aerie::hub
