#include "serve/requests/problem.h"

#include "io/json.h"

namespace aerie {

namespace {

const char* type_of(int status) {
    if (status == 401) return "authentication_error";
    if (status == 403) return "permission_error";
    if (status == 429) return "rate_limit_error";
    return status < 500 ? "invalid_request_error" : "server_error";
}

Json or_null(const std::string& text) {
    return text.empty() ? Json() : Json(text);
}

}  // namespace

std::string shortened(const std::string& line) {
    constexpr size_t kMost = 1000;
    if (line.size() <= kMost) return line;
    size_t end = kMost;
    while (end > 0 && (line[end] & 0xC0) == 0x80) --end;
    return line.substr(0, end);
}

// Set member by member: a braced list would be copied, and this is called when memory is short.
std::string Problem::json() const {
    Json error, whole;
    error.set("message", what());
    error.set("type", type_of(status));
    error.set("param", or_null(param));
    error.set("code", or_null(code));
    whole.set("error", std::move(error));
    return whole.dump();
}

Problem bad_request(const std::string& message, const std::string& param, const std::string& code) {
    return {400, code, message, param};
}

Problem not_supported(const std::string& message, const std::string& param) {
    return {400, "unsupported_parameter", message, param};
}

}  // namespace aerie
