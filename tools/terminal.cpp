// Progress on stderr, results on stdout, signals.
#include "terminal.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <system_error>

#include "core/error.h"

namespace aerie {

namespace {

constexpr size_t kMaxInputBytes = 64 << 20;

std::atomic<bool> interrupt_seen = false;

std::string read_all(std::istream& stream, const std::string& name) {
    std::string text;
    char block[1 << 16];
    while (stream.read(block, sizeof(block)) || stream.gcount() > 0) {
        text.append(block, size_t(stream.gcount()));
        if (text.size() > kMaxInputBytes)
            throw Error(name + ": more than " + std::to_string(kMaxInputBytes) + " bytes");
    }
    if (stream.bad()) throw Error(name + ": cannot be read");
    return text;
}

}  // namespace

void handle_interrupt() {
    std::signal(SIGINT, [](int) {
        interrupt_seen = true;
        std::signal(SIGINT, SIG_DFL);
    });
}

bool interrupted() {
    return interrupt_seen.load();
}

ProgressLine::ProgressLine(bool quiet) : shown_(!quiet && isatty(STDERR_FILENO)) {}

void ProgressLine::show(const std::string& text) {
    if (shown_) std::fprintf(stderr, "\r\033[K%s ...", text.c_str());
}

void ProgressLine::clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
}

void print(const std::string& text) {
    if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
        throw Error("stdout: " + std::generic_category().message(errno));
}

std::string read_input(const std::string& name) {
    if (name == "-") return read_all(std::cin, "stdin");
    std::ifstream file(name, std::ios::binary);
    if (!file) throw Error(name + ": " + std::generic_category().message(errno));
    return read_all(file, name);
}

}  // namespace aerie
