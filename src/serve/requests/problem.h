// Why a request is not served, as OpenAI's API tells it.
#pragma once

#include <string>

#include "core/error.h"

namespace aerie {

// What is said holds nothing of this machine: no path, no address.
class Problem : public UsageError {
  public:
    Problem(int status, std::string code, const std::string& message, std::string param = "")
        : UsageError(message), status(status), code(std::move(code)), param(std::move(param)) {}

    const int status;         // of HTTP
    const std::string code;   // for programs, such as "context_length_exceeded"
    const std::string param;  // the member that is wrong; may be empty

    std::string json() const;  // {"error": {...}}
};

// The request itself is wrong: status 400.
Problem bad_request(const std::string& message, const std::string& param = "",
                    const std::string& code = "invalid_value");
// Well meant, but there is no such thing here.
Problem not_supported(const std::string& message, const std::string& param);

}  // namespace aerie
