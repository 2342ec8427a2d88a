// The line that shows how far a prompt is read: "reading 512 of 1443 tokens, 38/s".
#pragma once

#include <string>

#include "core/clock.h"
#include "terminal.h"

namespace aerie {

class ReadingLine {
  public:
    explicit ReadingLine(ProgressLine& line) : line_(line) {}

    // `done` of `all` tokens are read. The first call starts the clock; tokens that are read by
    // then do not count in the rate.
    void show(int done, int all) {
        const double now = steady_seconds();
        if (first_ < 0) first_ = done, start_ = now;
        std::string text = "reading ";
        if (done > first_) text += std::to_string(done) + " of ";
        text += std::to_string(all) + " tokens";
        if (done > first_ && now > start_)
            text += ", " + std::to_string(int((done - first_) / (now - start_))) + "/s";
        line_.show(text);
    }

  private:
    ProgressLine& line_;
    int first_ = -1;
    double start_ = 0;
};

}  // namespace aerie
