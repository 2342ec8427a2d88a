// What of an answer a client has been told, and what there is to tell now: text, tokens with their
// log-probabilities, and where they come from.
#pragma once

#include <string>
#include <vector>

#include "engine/generation.h"
#include "io/json.h"

namespace aerie {

struct Piece {
    std::string text;
    Origin origin;  // of the newest token that made it final
};

class Told {
  public:
    Told(const Tokenizer& tokenizer, std::vector<int> eos_ids)
        : tokenizer_(tokenizer), eos_ids_(std::move(eos_ids)) {}

    void add(const std::string& text, const Origin& origin) { pieces_.push_back({text, origin}); }

    struct News {
        std::string text;
        std::vector<Piece> pieces;
        size_t first = 0, last = 0;   // tokens of the answer
        std::vector<size_t> offsets;  // in the answer's text, of these tokens
        bool empty() const { return text.empty() && first == last; }
    };
    // Since the last time. A token is told of with the first of its text; of what a stop string
    // hides, and of the token that ends an answer, nothing is told.
    News take(const GenerationResult& result, bool is_over);

  private:
    size_t tokens_until(const GenerationResult& result, bool is_over);

    const Tokenizer& tokenizer_;
    const std::vector<int> eos_ids_;
    std::vector<Piece> pieces_;
    size_t text_bytes_ = 0;   // told
    size_t tokens_ = 0;       // told
    size_t next_offset_ = 0;  // where the text of the next token begins
};

// As the two endpoints have them.
Json chat_logprobs(const Tokenizer& tokenizer, const GenerationResult& result,
                   const Told::News& news);
Json text_logprobs(const Tokenizer& tokenizer, const GenerationResult& result,
                   const Told::News& news);
// [{"text", "from": "prompt" | "draft" | "target", "depth"}]
Json pieces_json(const std::vector<Piece>& pieces);

}  // namespace aerie
