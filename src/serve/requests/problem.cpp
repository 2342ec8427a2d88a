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

std::string Problem::json() const {
    return Json(Json::Object{{"error", Json::Object{{"message", what()},
                                                    {"type", type_of(status)},
                                                    {"param", or_null(param)},
                                                    {"code", or_null(code)}}}})
        .dump();
}

Problem bad_request(const std::string& message, const std::string& param, const std::string& code) {
    return {400, code, message, param};
}

Problem not_supported(const std::string& message, const std::string& param) {
    return {400, "unsupported_parameter", message, param};
}

}  // namespace aerie
