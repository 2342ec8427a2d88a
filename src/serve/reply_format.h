// Replies in the shapes of OpenAI's API.
#pragma once

#include <string>

#include "engine/generation.h"
#include "io/json.h"
#include "serve/answer_deltas.h"
#include "serve/requests/request.h"

namespace aerie {

// Writes the parts of one reply, which share an id, a time and a model.
class ReplyFormat {
  public:
    ReplyFormat(const CompletionRequest& request, const std::string& model);

    // The parts of a stream, an event each.
    std::string first(int choice) const;  // names the role; empty unless it is a chat
    std::string part(int choice, Json logprobs, const AnswerDeltas::Delta& delta, Json aerie) const;
    std::string last(int choice, FinishReason finish, const Json& aerie) const;
    std::string usage(const Json& usage) const;

    // A whole reply is its beginning, its choices with commas between them, and its end.
    std::string begin_whole() const;
    std::string choice(int choice, const std::string& text, FinishReason finish, Json logprobs,
                       Json aerie) const;
    std::string end_whole(const Json& usage) const;

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

// The seed and the statistics of an answer. The seed is written as clients give it: with a sign.
Json aerie_member(uint64_t seed, const GenerationResult& result, const std::string& drafter);

std::string event_of(const Json& json);  // "data: ...\n\n"

}  // namespace aerie
