// Decodes tokens one by one: UTF-8 is never split, and stop strings are found across token borders.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace aerie {

class TextStream {
  public:
    // Stop strings that are empty or not UTF-8 are ignored. `continues`: the text stands behind
    // another, so its leading space is kept. The tokenizer must outlive the stream.
    TextStream(const Tokenizer& tokenizer, std::vector<std::string> stops, bool continues = false);

    // Text that became final with this token: whole UTF-8 characters that can no longer be part of
    // a stop string. Bytes that are not UTF-8 come out as U+FFFD.
    std::string push(int id);
    // True once a stop string is complete; push (or finish) then returned the text before it, and
    // no more tokens may be pushed. If there are several, the first one that is complete counts; if
    // two end at the same byte, the longer one counts.
    bool stopped() const { return stopped_; }
    // The rest, when the text ends without a stop string.
    std::string finish();

  private:
    std::string take(bool all);
    size_t find_stop() const;  // where in held_ a stop string begins; npos: nowhere

    const Tokenizer* tokenizer_;
    std::vector<std::string> stops_;
    std::string unfinished_;  // bytes of a character that is not whole yet
    std::string held_;        // characters not yet given out
    bool started_ = false;
    bool stopped_ = false;
};

}  // namespace aerie
