// Reads a client's request from JSON and checks it, without knowing a model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace aerie {

using Prompt = Variant<std::string, std::vector<int>>;

struct CompletionRequest {
    bool is_chat = false;
    std::string model;     // empty: whichever there is
    Json messages;         // for a chat: a list of objects with role and content, both strings
    Json template_kwargs;  // further variables of the chat template: an object, or null
    std::vector<Prompt> prompts;    // otherwise: one or more
    std::string suffix;             // the text behind the gap that the answer fills; empty: none
    bool echo = false;              // the answer's text begins with the prompt's
    int choices = 1;                // for each prompt
    std::optional<uint64_t> seed;   // -2 and less are taken modulo 2^64
    std::optional<int> max_tokens;  // -1: to the end of the context
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
    std::string joined;                // name of the conversation to continue; empty: none
    bool ignores_eos = false;          // the answer goes on until another limit
    std::vector<std::string> ignored;  // paths of members without an effect here, 100 at most
};

// Most bytes of text for /tokenize, whose reply is ten times as long.
constexpr size_t kMaxTokenizedBytes = 1 << 20;

struct TokenizeRequest {
    std::string model;
    Json messages;         // null: the text in `content`
    Json template_kwargs;  // as above
    std::string content;   // special tokens in it are plain text
    bool from_start = false;
    std::vector<std::string> ignored;  // as above
};

// All of them throw Problem.
CompletionRequest parse_chat_request(std::string_view json);
CompletionRequest parse_completion_request(std::string_view json);
TokenizeRequest parse_tokenize_request(std::string_view json);

}  // namespace aerie
