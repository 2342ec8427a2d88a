// Tracks how much of an answer its client has got, and makes the next delta: text, tokens with
// their log-probabilities, and where they come from.
#pragma once

#include <string>
#include <vector>

#include "engine/generation.h"
#include "io/json.h"

namespace aerie {

struct Piece {
    std::string text;
    Origin origin;  // origin of the newest token, which made the text final
};

// Counts where tokens begin in the text that they make, in characters. TextStream makes the same
// text.
class TokenOffsets {
  public:
    TokenOffsets(const Tokenizer& tokenizer, bool continues)
        : started_(continues || !tokenizer.drops_leading_space()) {}

    // Returns the offset of the next token, whose bytes these are. A token that continues a
    // character has the offset of that character.
    size_t take(std::string_view bytes);

  private:
    size_t offset_of(char first) const;

    bool started_;
    std::string unfinished_;  // bytes of a character that is not whole yet
    size_t characters_ = 0;   // whole characters so far
};

class AnswerDeltas {
  public:
    // `continues`: see Request::continues_text.
    AnswerDeltas(const Tokenizer& tokenizer, std::vector<int> eos_ids, bool continues = false)
        : tokenizer_(tokenizer), eos_ids_(std::move(eos_ids)), next_offset_(tokenizer, continues) {}

    void add(const std::string& text, const Origin& origin) { pieces_.push_back({text, origin}); }

    struct Delta {
        std::string text;
        std::vector<Piece> pieces;
        size_t first = 0, last = 0;   // tokens [first, last) of the answer
        std::vector<size_t> offsets;  // where these tokens begin in the text, in characters
        bool empty() const { return text.empty() && first == last; }
    };
    // Returns everything new since the last call. A token comes with the first character of its
    // text. Text that a stop string hides is left out, and so is the token that ends an answer.
    Delta take(const GenerationResult& result, bool is_over);

  private:
    const Tokenizer& tokenizer_;
    const std::vector<int> eos_ids_;
    std::vector<Piece> pieces_;
    size_t text_bytes_ = 0, characters_ = 0;  // already taken
    size_t tokens_ = 0;                       // already taken
    TokenOffsets next_offset_;                // behind the tokens that were taken
};

// Log-probabilities in the shapes of the two endpoints.
Json chat_logprobs(const Tokenizer& tokenizer, const GenerationResult& result,
                   const AnswerDeltas::Delta& delta);
Json text_logprobs(const Tokenizer& tokenizer, const GenerationResult& result,
                   const AnswerDeltas::Delta& delta);
// A list of {"text", "from", "depth"}; `from` is "prompt", "draft" or "target".
Json pieces_json(const std::vector<Piece>& pieces);

}  // namespace aerie
