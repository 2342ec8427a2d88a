// Replies in the shapes of OpenAI's API.
#pragma once

#include <string>

#include "engine/generation.h"
#include "io/json.h"
#include "serve/requests/request.h"
#include "serve/told.h"

namespace aerie {

// What all parts of a reply say alike.
class ReplyFormat {
  public:
    ReplyFormat(const CompletionRequest& request, const std::string& model);

    // Of a stream: an event each.
    std::string first(int choice) const;  // says the role; empty where there are no roles
    std::string part(int choice, const Json& logprobs, const Told::News& news,
                     const Json& aerie) const;
    std::string last(int choice, FinishReason finish, const Json& aerie) const;
    std::string usage(const Json& usage) const;

    // Of a whole reply.
    Json choice(int choice, const GenerationResult& result, const Json& logprobs,
                const Json& aerie) const;
    std::string whole(Json::Array choices, const Json& usage) const;

  private:
    Json head(bool is_part) const;
    std::string event(Json choices, const Json& usage) const;

    const bool is_chat_, tells_usage_;
    const std::string model_, id_;
    const int64_t created_;
};

struct Usage {
    int prompt = 0, reused = 0, completion = 0;
    Json json() const;
};

// Seed and statistics of an answer.
Json aerie_member(uint64_t seed, const GenerationResult& result, const std::string& drafter);

std::string event_of(const Json& json);  // "data: ...\n\n"

}  // namespace aerie
