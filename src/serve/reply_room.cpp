#include "serve/reply_room.h"

#include <algorithm>
#include <string>

#include "serve/requests/problem.h"

namespace aerie {

int64_t reply_bytes(const CompletionRequest& asked, std::span<const Request> requests,
                    int context) {
    constexpr int64_t kText = 8, kLogprob = 80, kPiece = 64;  // bytes of a token as JSON
    int64_t bytes = kText;
    if (asked.with_logprobs) bytes += kLogprob * (1 + asked.alternatives);
    if (asked.provenance) bytes += kPiece;
    int64_t tokens = 0, echoed = 0;
    for (const Request& request : requests) {
        const int room = context - int(request.prompt.size());
        tokens += request.max_tokens < 0 ? room : std::min(room, request.max_tokens);
        echoed += asked.echo ? kText * int64_t(request.prompt.size()) : 0;
    }
    return (bytes * tokens + echoed) * asked.choices;
}

void ReplyRoom::check(int64_t bytes) {
    if (bytes > kAll)
        throw bad_request("the reply may have more than " + std::to_string(kAll >> 20) +
                              " MB: set stream, or less of max_tokens, n and logprobs",
                          "max_tokens", "reply_too_large");
}

ReplyRoom::Share ReplyRoom::take(int64_t bytes) {
    if (bytes <= kSmall) return {};
    if (taken_.fetch_add(bytes) + bytes <= kAll) return {*this, bytes};
    taken_ -= bytes;
    throw Problem(429, "queue_full",
                  "too many large replies wait for their clients; set stream, or try again later");
}

}  // namespace aerie
