// Finds what a reasoning model thinks in its answer: the text between <think> and </think>, as
// DeepSeek R1, Qwen3 and their relatives write it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace aerie {

class Thoughts {
  public:
    struct Part {
        std::string text;
        bool is_thought = false;  // both tags belong to the thought
    };

    // Some templates write the first tag themselves; the answer then begins within the thought.
    explicit Thoughts(std::string_view prompt);

    // Returns what can be shown, which lacks what may be the beginning of a tag.
    std::vector<Part> put(std::string_view text);
    // Returns the rest.
    std::vector<Part> end();

  private:
    bool is_thinking_ = false;
    std::string held_;
};

// Takes thoughts out of what is shown, with the blanks between them and the answer.
class FoldedThoughts {
  public:
    std::vector<Thoughts::Part> without(const std::vector<Thoughts::Part>& parts);
    bool is_thinking() const { return is_thinking_; }  // the newest part was a thought

  private:
    bool is_thinking_ = false, drops_blanks_ = false;
};

}  // namespace aerie
