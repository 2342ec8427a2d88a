// Communication of the commands with the user: progress, output, input, signals.
#pragma once

#include <cstdio>
#include <string>

#include "backend/backend.h"
#include "core/error.h"

namespace aerie {

// To be called first. From then on Ctrl-C, SIGTERM and SIGHUP end the program at once with exit
// code 128 + signal, and a closed pipe or a full file are errors of the write. If stdin, stdout or
// stderr was closed it stays unusable: no file that is opened later takes its place.
void prepare_streams_and_signals();

// From now on the first signal is noted, so that the command can end cleanly; a second one ends the
// program at once.
void end_cleanly_on_signals();
// 0, or the exit code for the signal that was noted.
int interrupted();
// Thrown by work that ends because of it.
struct Interrupted {};

// From now on Ctrl-C ends nothing: it is noted, and the command stops what it is doing.
void note_interrupts();
bool interrupt_noted();  // since the last forget_interrupt
void forget_interrupt();

// The output of the command cannot be written.
struct OutputError : Error {
    using Error::Error;
};
// The reader of stdout has closed it, so no message is needed.
struct ReaderGone : OutputError {
    using OutputError::OutputError;
};
// Ends the program by SIGPIPE, as if it had never ignored it; returns if it was ignored from the
// start.
void end_by_broken_pipe();

// A line on a terminal that is replaced and finally removed; no output elsewhere.
class ProgressLine {
  public:
    explicit ProgressLine(bool quiet);
    ~ProgressLine() { clear(); }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    void show(const std::string& text);
    void hide();   // until it is shown again
    void clear();  // also ends the progress

  private:
    bool shown_;
};

// While it lives, keys that are typed on the terminal of stdin are not shown: they wait for what
// reads next. Ctrl-C stays a signal. Nothing happens where stdin is no terminal.
class HiddenTyping {
  public:
    HiddenTyping();
    ~HiddenTyping();
    HiddenTyping(const HiddenTyping&) = delete;
    HiddenTyping& operator=(const HiddenTyping&) = delete;
};

// Whether a stream is a file or a pipe, and no terminal or device such as /dev/null.
bool is_file_or_pipe(std::FILE* stream);

// Columns of the terminal that a stream is; 0: it is none, or does not say.
int columns_of(std::FILE* stream);

// The text as it is safe to show if `stream` is a terminal; otherwise unchanged.
std::string shown_on(std::FILE* stream, const std::string& text);
// Whether it is a terminal with colours, and the user wants to see them (NO_COLOR).
bool has_colors(std::FILE* stream);

// Writes to stdout at once: without control characters on a terminal, every byte elsewhere. Throws
// OutputError if the disk is full, ReaderGone.
void print(const std::string& text);
// Writes every byte, for text that is safe.
void print_bytes(const std::string& bytes);
// Writes to stderr in the same way; it is no error if that fails.
void tell(const std::string& text);
// A line of secondary information, dim where there are colours.
void print_note(const std::string& line);
// A line about an error. Messages quote files and arguments, so they are made safe.
void tell_error(std::string message);

// Prints a table of times per op on stderr, the longest first, or says that the device cannot tell.
void print_op_times(Backend& backend);
void print_op_times(const std::string& device, std::vector<OpTime> times);

// Reads a whole file or pipe, without a byte order mark at its start; "-" is stdin. Throws Error,
// also above 64 MB.
std::string read_input(const std::string& name);
// The same for a text: throws Error if there is a NUL byte in it.
std::string read_text_input(const std::string& name);

}  // namespace aerie
