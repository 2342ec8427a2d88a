// Progress on stderr, results on stdout, signals.
#include "terminal.h"

#include <unistd.h>

#include <algorithm>
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

void print_op_times(Backend& backend) {
    std::vector<OpTime> times = backend.op_times();
    const std::string& device = backend.capabilities().name;
    if (times.empty()) {
        std::fprintf(stderr, "%s: no times by op: this device cannot tell\n", device.c_str());
        return;
    }
    std::sort(times.begin(), times.end(),
              [](const OpTime& a, const OpTime& b) { return a.seconds > b.seconds; });
    double total = 0;
    for (const OpTime& time : times) total += time.seconds;
    std::fprintf(stderr, "%-18s %10s %12s %12s %7s\n", device.c_str(), "calls", "seconds",
                 "us a call", "share");
    for (const OpTime& time : times)
        std::fprintf(stderr, "%-18s %10ld %12.4f %12.1f %6.1f%%\n", time.op.c_str(), time.count,
                     time.seconds, 1e6 * time.seconds / double(time.count),
                     100 * time.seconds / total);
}

std::string read_input(const std::string& name) {
    if (name == "-") return read_all(std::cin, "stdin");
    std::ifstream file(name, std::ios::binary);
    if (!file) throw Error(name + ": " + std::generic_category().message(errno));
    return read_all(file, name);
}

}  // namespace aerie
