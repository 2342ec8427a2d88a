// Regular expressions over UTF-8, by PCRE2. A search that would take too long is an error, never a
// different result.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace aerie {

struct Span {
    size_t begin = 0, end = 0;  // bytes
};

class Regex {
  public:
    // Working memory for one caller. A Regex may serve many callers at once, each with a Scratch of
    // its own. A Scratch counts the time of all its searches.
    class Scratch {
        struct State;

      public:
        // Counts time while it lives, also between searches. Around many searches it saves reading
        // the clock in each of them.
        class Watch {
          public:
            explicit Watch(Scratch& scratch);
            ~Watch();
            Watch(const Watch&) = delete;
            Watch& operator=(const Watch&) = delete;

          private:
            State* state_;  // nullptr: another one counts already
        };

        Scratch();
        Scratch(Scratch&&) noexcept;
        Scratch& operator=(Scratch&&) noexcept;
        ~Scratch();

      private:
        friend class Regex;
        State& state();

        std::unique_ptr<State> state_;  // nullptr before the first search
    };

    // `pattern` as in tokenizer.json. Throws Error, one line that names no file.
    explicit Regex(std::string_view pattern);
    const std::string& pattern() const;

    // All matches from left to right that do not overlap, without empty ones directly behind
    // another match. `text` is well-formed UTF-8. Throws Error if the pattern is too slow for it:
    // if it takes more steps than a number that grows with the text or, with all searches in the
    // same room, more time.
    void find_all(std::string_view text, Scratch& scratch, std::vector<Span>& found) const;

  private:
    struct Code;
    class Search;
    std::shared_ptr<const Code> code_;
};

}  // namespace aerie
