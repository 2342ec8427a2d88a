#include "serve/sockets/request_reader.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <limits>

#include "serve/requests/problem.h"

namespace aerie {

namespace http = boost::beast::http;

namespace {

constexpr std::string_view kLineEnd = "\r\n";

Problem bad_http(const std::string& why) {
    return {400, "bad_http", "this is no HTTP/1.1 request: " + why};
}

Problem head_too_large() {
    return {431, "headers_too_large", "the headers are larger than 16 KB"};
}

HttpHead head_of(const http::request_parser<GrownBody>& parser) {
    const auto text = [](boost::beast::string_view view) {
        return std::string(view.data(), view.size());
    };
    const auto& request = parser.get();
    HttpHead head{text(request.method_string()), text(request.target()), {}};
    head.is_http_1_1 = request.version() >= 11;
    for (const auto& field : request.base())
        head.fields.emplace_back(text(field.name_string()), text(field.value()));
    return head;
}

}  // namespace

RequestReader::RequestReader() {
    parser_.header_limit(kMaxHeadBytes);
    // The gate refuses a Content-Length that is too large, once it knows who asks. (Boost 1.74 does
    // not take boost::none for no limit.)
    parser_.body_limit(std::numeric_limits<uint64_t>::max());
}

size_t RequestReader::take(std::string_view bytes) {
    return has_head() ? take_body(bytes) : take_head(bytes);
}

// Gives these bytes to the parser; returns how many it took.
size_t RequestReader::put(std::string_view bytes) {
    boost::beast::error_code error;
    const size_t taken = parser_.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    if (error == http::error::header_limit) throw head_too_large();
    if (error == http::error::body_limit) throw body_too_large();
    if (error && error != http::error::need_more) throw bad_http(error.message());
    return taken;
}

size_t RequestReader::take_head(std::string_view bytes) {
    size_t before = 0;
    // Old clients send an empty line after a body: RFC 9112, 2.2.
    while (!has_begun_ && bytes.substr(before).starts_with(kLineEnd)) before += kLineEnd.size();
    bytes.remove_prefix(before);
    if (bytes.empty() || (!has_begun_ && bytes == kLineEnd.substr(0, 1))) return before;
    has_begun_ = true;
    if (head_bytes_ == 0) is_head_request_ = bytes.starts_with("HEAD ");
    const size_t taken = put(bytes);
    head_bytes_ += taken;
    // The limit of Boost is for bytes that come at once.
    if (head_bytes_ + (has_head() ? 0 : bytes.size() - taken) > kMaxHeadBytes)
        throw head_too_large();
    // A field that continues in the next line is refused, since others may read it differently: RFC
    // 9112, 5.2.
    const std::string_view head = bytes.substr(0, taken);
    if (head.find("\r\n ") != head.npos || head.find("\r\n\t") != head.npos)
        throw bad_http("a header goes on in the next line");
    if (has_head()) {
        head_ = head_of(parser_);
        parser_.body_limit(kMaxBodyBytes);
        parser_.eager(true);
    }
    return before + taken;
}

size_t RequestReader::take_body(std::string_view bytes) {
    size_t taken = 0;
    while (!is_whole() && taken < bytes.size()) {
        const size_t more = put(bytes.substr(taken));
        taken += more;
        if (more == 0) break;
    }
    if (body().size() > kMaxBodyBytes) throw body_too_large();
    // The limit holds for lines between chunks and fields after the last one, too.
    if (!is_whole() && bytes.size() - taken > kMaxHeadBytes) throw head_too_large();
    return taken;
}

}  // namespace aerie
