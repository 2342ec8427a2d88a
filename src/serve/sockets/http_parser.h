// The reader of HTTP requests, with its limits.
#pragma once

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "serve/requests/gate.h"

namespace aerie {

constexpr uint32_t kMaxHeadBytes = 16 << 10;
constexpr uint64_t kMaxBodyBytes = 8 << 20;

using HttpParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

inline void set_limits(HttpParser& parser) {
    parser.header_limit(kMaxHeadBytes);
    parser.body_limit(kMaxBodyBytes);
}

// Of a request whose head is whole.
inline HttpHead head_of(const HttpParser& parser) {
    const auto text = [](boost::beast::string_view view) {
        return std::string(view.data(), view.size());
    };
    const auto& request = parser.get();
    HttpHead head{text(request.method_string()), text(request.target()), {}};
    for (const auto& field : request.base())
        head.fields.emplace_back(text(field.name_string()), text(field.value()));
    return head;
}

}  // namespace aerie
