// The reason why a request is refused, in the shape of OpenAI's API.
#pragma once

#include <string>

#include "core/error.h"

namespace aerie {

// The first 1,000 bytes of a line, cut between characters. A line may quote a client's text.
std::string shortened(const std::string& line);

// The message says nothing about this machine: no path, no address.
class Problem : public UsageError {
  public:
    Problem(int status, std::string code, const std::string& message, std::string param = "")
        : UsageError(shortened(message)),
          status(status),
          code(std::move(code)),
          param(std::move(param)) {}

    const int status;         // status of HTTP
    const std::string code;   // for programs, such as "context_length_exceeded"
    const std::string param;  // the member that is wrong; may be empty
    std::string allow;        // with status 405, the methods that the path takes

    std::string json() const;  // {"error": {...}}
};

// The request itself is wrong: status 400.
Problem bad_request(const std::string& message, const std::string& param = "",
                    const std::string& code = "invalid_value");
// The request is valid, but asks for something that this server does not have: status 400.
Problem not_supported(const std::string& message, const std::string& param);

}  // namespace aerie
