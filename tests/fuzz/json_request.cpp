// Fuzzes the JSON bodies of requests: the parser of each endpoint that takes one, and the name of a
// conversation that the body may hold.
#include "fuzz.h"
#include "serve/requests/conversation_name.h"
#include "serve/requests/problem.h"
#include "serve/requests/request.h"

namespace {

using namespace aerie;

void expect(bool holds) {
    if (!holds) std::abort();
}

// Every refusal must be the client's error, with a description in JSON.
template <typename Action>
void read(Action action) {
    fuzz::run([&] {
        try {
            action();
        } catch (const Problem& problem) {
            expect(problem.status == 400 && !problem.code.empty());
            const Json reported = Json::parse(problem.json(), "problem");
            expect(reported.find("error") && reported.find("error")->find("message")->string());
            throw;
        }
    });
}

void check_messages(const Json& messages) {
    expect(messages.array() && !messages.array()->empty());
    for (const Json& message : *messages.array()) {
        expect(message.find("role") && message.find("role")->string());
        expect(message.find("content") && message.find("content")->string());
    }
}

void check(const CompletionRequest& request) {
    expect(request.choices >= 1 && request.choices <= 8);
    expect(!request.max_tokens || *request.max_tokens >= -1);
    expect(!request.temperature || (*request.temperature >= 0 && *request.temperature <= 2));
    expect(request.alternatives >= 0 && request.alternatives <= 20);
    expect(request.alternatives == 0 || request.with_logprobs);
    expect(request.stops.size() <= 16 && request.logit_bias.size() <= 1024);
    for (const auto& [token, bias] : request.logit_bias)
        expect(token >= 0 && bias >= -100 && bias <= 100);
    if (request.is_chat) check_messages(request.messages);
    for (const auto& prompt : request.prompts)
        if (const auto* ids = std::get_if<std::vector<int>>(&prompt))
            for (const int id : *ids) expect(id >= 0);
    if (const auto held = ids_of_conversation(request.joined)) {
        for (const int id : *held) expect(id >= 0);
        expect(ids_of_conversation(conversation_name(*held)) == held);
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view json = fuzz::text(data, size);
    read([&] { check(parse_chat_request(json)); });
    read([&] { check(parse_completion_request(json)); });
    read([&] {
        const TokenizeRequest request = parse_tokenize_request(json);
        if (!request.messages.is_null()) check_messages(request.messages);
    });
    return 0;
}
