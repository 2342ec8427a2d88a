// Fuzzes what a client sends: an HTTP request by the reader, the gate and the request it is for; or
// the JSON alone, by all that read requests.
#include <boost/asio/buffer.hpp>

#include "fuzz.h"
#include "serve/requests/request.h"
#include "serve/sockets/http_parser.h"

namespace {

using namespace aerie;

Gate gate() {
    Gate gate;
    gate.api_key = "k";
    gate.add_address("localhost", 1);
    return gate;
}

void read_json(std::string_view json) {
    fuzz::run([&] { parse_chat_request(json); });
    fuzz::run([&] { parse_completion_request(json); });
    fuzz::run([&] { parse_tokenize_request(json); });
}

void read_http(std::string_view bytes) {
    HttpParser parser;
    set_limits(parser);
    parser.eager(true);
    boost::beast::error_code error;
    for (size_t taken = 1; taken > 0 && !error && !parser.is_done(); bytes.remove_prefix(taken))
        taken = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    if (!parser.is_header_done()) return;
    static const Gate admits = gate();
    const HttpHead head = head_of(parser);
    const Endpoint endpoint = admits.admit(head);
    if (head.find("host") != "localhost:1") std::abort();
    if (endpoint == Endpoint::model && model_in(head.target).empty()) std::abort();
    if (endpoint == Endpoint::chat) parse_chat_request(parser.get().body());
    if (endpoint == Endpoint::completions) parse_completion_request(parser.get().body());
    if (endpoint == Endpoint::tokenize) parse_tokenize_request(parser.get().body());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view text = fuzz::text(data, size);
    if (text.starts_with('{')) {
        read_json(text);
        return 0;
    }
    return fuzz::run([&] { read_http(text); });
}
