#include "line_reader.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/utf8.h"
#include "terminal.h"

namespace aerie {

namespace {

constexpr size_t kMaxLineBytes = 64 << 20;

class PlainReader : public LineReader {
  public:
    explicit PlainReader(bool is_terminal) : is_terminal_(is_terminal) {}

    Got read(const std::string& prompt, std::string& line) override {
        if (is_terminal_) tell(prompt);
        forget_interrupt();
        size_t end = 0, seen = 0;
        while ((end = bytes_.find('\n', seen)) == std::string::npos && !has_ended_) {
            seen = bytes_.size();
            if (bytes_.size() > kMaxLineBytes)
                throw Error("stdin: a line of more than " + std::to_string(kMaxLineBytes) +
                            " bytes");
            if (!wait()) continue;
            if (interrupted()) return Got::end;
            if (interrupt_noted()) return clear();
            fill();
        }
        if (bytes_.empty()) return Got::end;
        line = bytes_.substr(0, end);
        bytes_.erase(0, end == std::string::npos ? end : end + 1);
        if (std::exchange(is_first_, false)) line = std::string(without_byte_order_mark(line));
        if (line.ends_with('\r')) line.pop_back();
        return Got::line;
    }

  private:
    // True if there is input or a signal to look at.
    bool wait() const {
        pollfd input = {STDIN_FILENO, POLLIN, 0};
        return ::poll(&input, 1, kLookMilliseconds) != 0 || interrupted() || interrupt_noted();
    }

    // The terminal has discarded what was typed.
    Got clear() {
        tell("\n");
        bytes_.clear();
        return Got::cleared;
    }

    void fill() {
        char block[1 << 16];
        const ssize_t got = ::read(STDIN_FILENO, block, sizeof(block));
        if (got > 0) bytes_.append(block, size_t(got));
        if (got == 0) has_ended_ = true;
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            throw Error("stdin: " + std::generic_category().message(errno));
    }

    const bool is_terminal_;
    bool has_ended_ = false, is_first_ = true;  // whether the next line is the first one
    std::string bytes_;
};

}  // namespace

std::unique_ptr<LineReader> make_plain_reader(bool is_terminal) {
    return std::make_unique<PlainReader>(is_terminal);
}

#ifndef AERIE_HAS_LIBEDIT
std::unique_ptr<LineReader> make_line_editor(const std::filesystem::path&) {
    return nullptr;
}
#endif

}  // namespace aerie
