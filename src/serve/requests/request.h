// Reads a client's request from JSON and checks it, without knowing a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace aerie {

struct CompletionRequest {
    bool is_chat = false;
    std::string model;  // empty: whichever there is
    Json messages;      // for a chat: a list of objects with role and content, both strings
    Variant<std::string, std::vector<int>> prompt;  // otherwise
    int choices = 1;
    std::optional<uint64_t> seed;  // a negative one is taken modulo 2^64
    std::optional<int> max_tokens;
    std::optional<float> temperature, top_p, min_p, repetition_penalty;
    std::optional<int> top_k;
    float frequency_penalty = 0, presence_penalty = 0;
    std::vector<std::string> stops;
    std::vector<std::pair<int, float>> logit_bias;  // by token
    bool with_logprobs = false;
    int alternatives = 0;
    bool stream = false, include_usage = false;
    // Requests with different keys share nothing in the prompt cache.
    std::string cache_key;
    std::string key;  // the client's, from the head of the request; empty: none
    // Members of aerie's own: whether to draft; to report where tokens come from; to report the
    // name of the conversation.
    bool drafts = true, provenance = false, join = false;
    std::string joined;        // name of the conversation to continue; empty: none
    bool ignores_eos = false;  // the answer goes on until another limit
};

// Most bytes of text for /tokenize, whose reply is ten times as long.
constexpr size_t kMaxTokenizedBytes = 1 << 20;

struct TokenizeRequest {
    std::string model;
    Json messages;        // null: the text in `content`
    std::string content;  // special tokens in it are plain text
    bool from_start = false;
};

// All of them throw Problem.
CompletionRequest parse_chat_request(std::string_view json);
CompletionRequest parse_completion_request(std::string_view json);
TokenizeRequest parse_tokenize_request(std::string_view json);

}  // namespace aerie
