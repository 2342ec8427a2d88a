// Fuzzes the bytes that a client sends on a connection. The request reader must return the same
// requests however the bytes are split, and the gate must admit only requests that are allowed.
#include <algorithm>
#include <memory>

#include "fuzz.h"
#include "serve/requests/request.h"
#include "serve/sockets/request_reader.h"

namespace {

using namespace aerie;

const std::string kHost = "localhost:1", kPage = "https://a.example";

// Rows as those of src/serve/endpoints.cpp, which needs the engine.
constexpr Endpoint kChat = {"/v1/chat/completions", "POST", "chat"},
                   kCompletions = {"/v1/completions", "POST", "completions"},
                   kTokenize = {"/tokenize", "POST", "tokenize"};
constexpr Endpoint kEndpoints[] = {kChat,
                                   kCompletions,
                                   kTokenize,
                                   {"/v1/models/*", "GET", "models"},
                                   {"/health", "GET", "health", Endpoint::Access::monitor},
                                   {"*", "OPTIONS", "preflight", Endpoint::Access::without_key}};

Gate gate() {
    Gate gate(kEndpoints);
    gate.api_key = "k";
    gate.hosts = {kHost};
    gate.origins = {kPage};
    return gate;
}

void demand(bool holds) {
    if (!holds) std::abort();
}

// If a client could put text into a field of the reply, that text might hold the end of a line.
void check_fields(const Gate& gate, const HttpHead& head) {
    const std::string_view page = gate.page_that_asks(head);
    demand(page.empty() || page == kPage);
    const std::string fields = page_fields(page, head);
    const auto lines = std::count(fields.begin(), fields.end(), '\n');
    demand(lines == (page.empty() ? 0 : 4) &&
           lines == std::count(fields.begin(), fields.end(), '\r'));
}

void parse_body(const Endpoint& endpoint, std::string_view body) {
    if (endpoint.path == kChat.path) parse_chat_request(body);
    if (endpoint.path == kCompletions.path) parse_completion_request(body);
    if (endpoint.path == kTokenize.path) parse_tokenize_request(body);
}

// Handles a request as the server does, without the engine. Throws Problem if it is refused.
void answer(const Gate& gate, RequestReader& reader) {
    const HttpHead& head = reader.head();
    demand(reader.body().size() <= kMaxBodyBytes);
    check_fields(gate, head);
    check_framing(head);
    if (const auto length = head.find("content-length"))
        demand(*length == std::to_string(reader.body().size()) || length->starts_with('0'));
    const Endpoint& endpoint = gate.admit(head);
    expects_continue(head);
    demand(head.find("host").has_value());
    demand(!(head.find("origin") && gate.page_that_asks(head).empty()));
    if (endpoint.path.ends_with("/*")) rest_of_path(endpoint, head.target);
    parse_body(endpoint, reader.body());
}

std::string description_of(const RequestReader& reader) {
    const HttpHead& head = reader.head();
    std::string text = head.method + ' ' + head.target + (head.is_http_1_1 ? " 1" : " 0") +
                       (reader.keeps_alive() ? "k" : "c") + (reader.is_head_request() ? "h" : "b");
    for (const auto& [name, value] : head.fields) text += '\n' + name + ':' + value;
    return text;
}

// All requests of a connection, and how it ends: a status, or empty if it was not refused.
struct Talk {
    std::string requests, end = {};
    // The rest of a request does not come.
    bool is_unfinished = false;

    // An error in an unfinished request may be found or not.
    bool agrees(const Talk& other) const {
        return requests == other.requests &&
               (end == other.end || is_unfinished || other.is_unfinished);
    }
};

// The bytes come in pieces of `piece` bytes.
Talk talk_of(std::string_view bytes, size_t piece) {
    static const Gate admits = gate();
    Talk talk;
    std::string unread;
    auto reader = std::make_unique<RequestReader>();
    while (!bytes.empty() || !unread.empty()) {
        const size_t more = std::min(piece, bytes.size());
        unread += bytes.substr(0, more);
        bytes.remove_prefix(more);
        size_t taken = 0;
        try {
            taken = reader->take(unread);
        } catch (const Problem& problem) {
            talk.end = std::to_string(problem.status);
            return talk;
        }
        demand(taken <= unread.size());
        unread.erase(0, taken);
        if (!reader->has_head() || !reader->is_whole()) {
            if (more == 0 && taken == 0) break;  // the rest of the request does not come
            continue;
        }
        talk.requests += description_of(*reader) + "\n\n" + reader->body();
        const bool keeps_alive = reader->keeps_alive();
        fuzz::run([&] { answer(admits, *reader); });
        if (!keeps_alive) return talk;
        reader = std::make_unique<RequestReader>();
    }
    talk.is_unfinished = reader->has_begun();
    return talk;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes = fuzz::text(data, size);
    const Talk whole = talk_of(bytes, bytes.size() + 1);
    demand(whole.agrees(talk_of(bytes, 1 + size % 23)));
    if (size < 1024) demand(whole.agrees(talk_of(bytes, 1)));
    return 0;
}
