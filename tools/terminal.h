// What the commands share towards the user: progress, output, input, Ctrl-C.
#pragma once

#include <string>

#include "backend/backend.h"

namespace aerie {

constexpr int kInterrupted = 130;  // exit code

// The first Ctrl-C is noted, for the command to end cleanly; a second one ends the program.
void handle_interrupt();
bool interrupted();

// One line on a terminal that is replaced and finally removed; nothing elsewhere.
class ProgressLine {
  public:
    explicit ProgressLine(bool quiet);
    ~ProgressLine() { clear(); }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    void show(const std::string& text);
    void clear();  // for good

  private:
    bool shown_;
};

// To stdout, at once; throws Error where the reader has gone or the disk is full.
void print(const std::string& text);

// A table of times by op on stderr, the longest first; says so where the device cannot tell.
void print_op_times(Backend& backend);

// The whole of a file or pipe; "-" is stdin. Throws Error, also above 64 MB.
std::string read_input(const std::string& name);

}  // namespace aerie
