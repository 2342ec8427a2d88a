// Progress on stderr, results on stdout, signals.
#include "terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>
#include <system_error>

#include "core/error.h"
#include "core/utf8.h"
#include "word_wrap.h"

namespace aerie {

namespace {

constexpr size_t kMaxInputBytes = 64 << 20;
constexpr char kClearLine[] = "\r\033[K";

// Used in a signal handler, so all of them are lock-free.
std::atomic<bool> ends_cleanly = false, line_shown = false;
std::atomic<bool> notes_interrupts = false, interrupt = false;
std::atomic<int> noted_signal = 0;

bool pipe_was_ignored = false;

// The terminal's settings before typing was hidden; a signal that ends the program restores them.
termios shown_typing;
std::atomic<bool> typing_is_hidden = false;

void show_typing() {
    if (typing_is_hidden.exchange(false)) ::tcsetattr(STDIN_FILENO, TCSADRAIN, &shown_typing);
}

void on_signal(int signal) {
    if (signal == SIGINT && notes_interrupts) {
        interrupt = true;
        return;
    }
    int none = 0;
    if (ends_cleanly && noted_signal.compare_exchange_strong(none, signal)) return;
    if (line_shown) (void)!::write(STDERR_FILENO, kClearLine, sizeof(kClearLine) - 1);
    show_typing();
    ::_exit(128 + signal);
}

// A signal that the user's shell ignores (nohup, jobs in the background) stays ignored.
void handle(int signal) {
    struct sigaction action = {};
    if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) return;
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    ::sigaction(signal, &action, nullptr);
}

std::string read_all(std::FILE* file, const std::string& name) {
    std::string text;
    char block[1 << 16];
    while (!std::feof(file)) {  // a terminal that is read beyond its end waits for another one
        const size_t got = std::fread(block, 1, sizeof(block), file);
        if (got == 0) break;
        text.append(block, got);
        if (text.size() > kMaxInputBytes)
            throw Error(name + ": more than " + std::to_string(kMaxInputBytes) + " bytes");
    }
    if (std::ferror(file)) throw Error(name + ": " + std::generic_category().message(errno));
    return std::string(without_byte_order_mark(text));
}

}  // namespace

void prepare_streams_and_signals() {
    // open takes the lowest free descriptor, which is the closed one. A file opened in the wrong
    // mode fails when it is used.
    for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(stream, F_GETFD) < 0)
            (void)::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) handle(signal);
    pipe_was_ignored = std::signal(SIGPIPE, SIG_IGN) == SIG_IGN;
    std::signal(SIGXFSZ, SIG_IGN);
}

void end_cleanly_on_signals() {
    ends_cleanly = true;
}

void note_interrupts() {
    notes_interrupts = true;
}

bool interrupt_noted() {
    return interrupt;
}

void forget_interrupt() {
    interrupt = false;
}

int interrupted() {
    const int signal = noted_signal.load();
    return signal == 0 ? 0 : 128 + signal;
}

void end_by_broken_pipe() {
    if (pipe_was_ignored) return;
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
}

ProgressLine::ProgressLine(bool quiet) : shown_(!quiet && isatty(STDERR_FILENO)) {}

void ProgressLine::show(const std::string& text) {
    if (!shown_) return;
    line_shown = true;
    constexpr int kDots = 5;  // columns of " ..." and the cursor
    const int width = columns_of(stderr);
    std::fprintf(
        stderr, "%s%s ...", kClearLine,
        last_columns(printable(text), width == 0 ? 0 : std::max(width - kDots, 1)).c_str());
}

void ProgressLine::hide() {
    if (shown_ && line_shown) std::fputs(kClearLine, stderr);
    line_shown = false;
}

void ProgressLine::clear() {
    hide();
    shown_ = false;
}

HiddenTyping::HiddenTyping() {
    if (::tcgetattr(STDIN_FILENO, &shown_typing) != 0) return;
    termios hidden = shown_typing;
    hidden.c_lflag &= ~tcflag_t(ECHO | ICANON);
    hidden.c_lflag |= NOFLSH;  // Ctrl-C would throw the typed text away
    typing_is_hidden = true;
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &hidden);
}

HiddenTyping::~HiddenTyping() {
    show_typing();
}

bool is_file_or_pipe(std::FILE* stream) {
    struct stat status {};
    return ::fstat(::fileno(stream), &status) == 0 &&
           (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode));
}

int columns_of(std::FILE* stream) {
    winsize size{};
    return ::ioctl(::fileno(stream), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::string shown_on(std::FILE* stream, const std::string& text) {
    return ::isatty(::fileno(stream)) ? printable(text, "\n\t", "\xEF\xBF\xBD") : text;
}

bool has_colors(std::FILE* stream) {
    const char* kind = std::getenv("TERM");
    return ::isatty(::fileno(stream)) && !std::getenv("NO_COLOR") &&
           !(kind && std::string_view(kind) == "dumb");
}

void print(const std::string& text) {
    print_bytes(shown_on(stdout, text));
}

void print_bytes(const std::string& bytes) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() &&
        std::fflush(stdout) == 0)
        return;
    const int error = errno;
    const std::string why = "stdout: " + std::generic_category().message(error);
    if (error == EPIPE) throw ReaderGone(why);
    throw OutputError(why);
}

void tell(const std::string& text) {
    std::fputs(shown_on(stderr, text).c_str(), stderr);
}

void print_note(const std::string& line) {
    const bool dim = has_colors(stderr);
    WordWrap wrap;
    std::string shown;
    const auto add = [&](const std::vector<WordWrap::Piece>& pieces) {
        for (const WordWrap::Piece& piece : pieces) shown += piece.text;
    };
    add(wrap.put(shown_on(stderr, line), {}, columns_of(stderr)));
    add(wrap.end());
    std::fprintf(stderr, "%s%s%s\n", dim ? "\033[2m" : "", shown.c_str(), dim ? "\033[0m" : "");
}

void tell_error(std::string message) {
    constexpr size_t kMaxBytes = 2000;
    if (message.size() > kMaxBytes) message = message.substr(0, kMaxBytes) + "...";
    std::fprintf(stderr, "aerie: %s\n", printable(message).c_str());
}

void print_op_times(Backend& backend) {
    print_op_times(backend.capabilities().name, backend.op_times());
}

void print_op_times(const std::string& device, std::vector<OpTime> times) {
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
    if (name == "-") {
        if (::isatty(STDIN_FILENO)) print_note("(reading the terminal; Ctrl-D ends the text)");
        return read_all(stdin, "stdin");
    }
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(name.c_str(), "rbe"),
                                                               std::fclose);
    if (!file) throw Error(name + ": " + std::generic_category().message(errno));
    return read_all(file.get(), name);
}

std::string read_text_input(const std::string& name) {
    std::string text = read_input(name);
    if (text.find('\0') != text.npos)
        throw Error((name == "-" ? "stdin" : name) + ": a binary file, not a text");
    return text;
}

}  // namespace aerie
