// What the commands share towards the user: progress, output, input, signals.
#pragma once

#include <cstdio>
#include <string>

#include "backend/backend.h"
#include "core/error.h"

namespace aerie {

// Before anything else. Ctrl-C, SIGTERM and SIGHUP end the program at once from here on, with exit
// code 128 + signal; a gone reader or a full file are errors of the write. What was closed of
// stdin, stdout and stderr stays unusable: no file that is opened later takes its place.
void prepare_streams_and_signals();

// From here on the first signal is noted, for the command to end cleanly; a second one ends the
// program at once.
void end_cleanly_on_signals();
// 0, or the exit code of the signal that was noted.
int interrupted();

// From here on Ctrl-C ends nothing: it is noted, for the command to stop what it is at.
void note_interrupts();
bool interrupt_noted();  // since the last call of
void forget_interrupt();

// What the command puts out cannot be written.
struct OutputError : Error {
    using Error::Error;
};
// The reader of stdout has gone: nothing to say, and nobody to say it to.
struct ReaderGone : OutputError {
    using OutputError::OutputError;
};
// Ends the program by SIGPIPE, as those do that never asked; returns if that is ignored here.
void end_by_broken_pipe();

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

// The text as it is safe to show where `stream` is a terminal, else as it is.
std::string shown_on(std::FILE* stream, const std::string& text);
// A terminal that shows colours, for a user who wants to see them (NO_COLOR).
bool has_colors(std::FILE* stream);

// To stdout, at once: on a terminal without characters that it would obey, elsewhere every byte.
// Throws OutputError where the disk is full, ReaderGone.
void print(const std::string& text);
// Every byte of what is safe.
void print_bytes(const std::string& bytes);
// To stderr, likewise; that it cannot be written is no error.
void tell(const std::string& text);
// A line beside the matter, dim where there are colours.
void tell_note(const std::string& line);
// A line of error. Messages quote files and arguments, which may hold anything.
void tell_error(std::string message);

// A table of times by op on stderr, the longest first; says so where the device cannot tell.
void print_op_times(Backend& backend);

// The whole of a file or pipe but for a byte order mark at its head; "-" is stdin. Throws Error,
// also above 64 MB.
std::string read_input(const std::string& name);

}  // namespace aerie
