// What a client asks for, read from JSON and checked; nothing here knows a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/json.h"

namespace aerie {

struct CompletionRequest {
    bool is_chat = false;
    std::string model;  // empty: whichever there is
    Json messages;      // of a chat: a list of objects with role and content, both strings
    std::variant<std::string, std::vector<int>> prompt;  // else
    int choices = 1;
    std::optional<uint64_t> seed;
    std::optional<int> max_tokens;
    std::optional<float> temperature, top_p, min_p, repetition_penalty;
    std::optional<int> top_k;
    float frequency_penalty = 0, presence_penalty = 0;
    std::vector<std::string> stops;
    std::vector<std::pair<int, float>> logit_bias;  // by token
    bool with_logprobs = false;
    int alternatives = 0;
    bool stream = false, include_usage = false;
    // Our own: no drafts; tell where tokens come from; keep the ids of a conversation that is held.
    bool drafts = true, provenance = false, join = false;
    bool ignores_eos = false;  // the answer goes on until another limit
};

struct TokenizeRequest {
    std::string model;
    Json messages;        // null: the text
    std::string content;  // special tokens in it are plain text
    bool from_start = false;
};

// All of them throw Problem.
CompletionRequest parse_chat_request(std::string_view json);
CompletionRequest parse_completion_request(std::string_view json);
TokenizeRequest parse_tokenize_request(std::string_view json);

}  // namespace aerie
