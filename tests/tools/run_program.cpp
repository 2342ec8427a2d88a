// fork and exec with temporary files instead of pipes: nothing blocks, whatever the child prints.
#include "tools/run_program.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "core/error.h"

namespace aerie::test {

namespace {

constexpr unsigned kTimeLimitSeconds = 60;
constexpr int kCouldNotStart = 99;

std::string contents(std::FILE* file) {
    std::string text;
    char block[4096];
    off_t at = 0;
    for (ssize_t got; (got = ::pread(fileno(file), block, sizeof(block), at)) > 0; at += got)
        text.append(block, size_t(got));
    return text;
}

[[noreturn]] void become_program(const std::vector<std::string>& arguments,
                                 const Surroundings& surroundings) {
    for (const char* name :
         {"AERIE_MODEL", "AERIE_MODELS", "AERIE_HEAD", "AERIE_THREADS", "HF_HUB_CACHE", "HF_HOME"})
        ::unsetenv(name);
    // The default model of the tests takes milliseconds.
    ::setenv("AERIE_MODEL", "aerie-tiny", 1);
    // Numbers and texts are the CPU's, even if there is a GPU.
    ::setenv("AERIE_DEVICE", "cpu", 1);
    // The program's caches and state are kept apart from the user's.
    ::setenv("XDG_CACHE_HOME",
             (std::filesystem::temp_directory_path() / "aerie_test_cache").c_str(), 1);
    ::setenv("XDG_STATE_HOME",
             (std::filesystem::temp_directory_path() / "aerie_test_state").c_str(), 1);
    for (const auto& [name, value] : surroundings.variables)
        ::setenv(name.c_str(), value.c_str(), 1);
    if (!surroundings.folder.empty() && ::chdir(surroundings.folder.c_str()) != 0)
        ::_exit(kCouldNotStart);
    std::vector<char*> argv = {const_cast<char*>("aerie")};
    for (const std::string& argument : arguments)
        argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    // The process that started the tests may ignore signals, as a shell does for background jobs.
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
    if (surroundings.before) surroundings.before();
    ::alarm(kTimeLimitSeconds);
    ::execv(AERIE_PROGRAM, argv.data());
    ::_exit(kCouldNotStart);
}

double seconds(const timeval& time) {
    return double(time.tv_sec) + double(time.tv_usec) / 1e6;
}

}  // namespace

std::filesystem::path program_file() {
    return AERIE_PROGRAM;
}

Program::Program(const std::vector<std::string>& arguments, const Surroundings& surroundings)
    : in_(std::tmpfile()), out_(std::tmpfile()), err_(std::tmpfile()) {
    if (!in_ || !out_ || !err_)
        throw Error("no temporary files for the program's input and output");
    const std::string& input = surroundings.input;
    if (::pwrite(fileno(in_.get()), input.data(), input.size(), 0) != ssize_t(input.size()))
        throw Error("the program's input could not be written");
    id_ = ::fork();
    if (id_ < 0) throw Error("fork failed");
    if (id_ > 0) return;
    ::dup2(fileno(in_.get()), STDIN_FILENO);
    ::dup2(fileno(out_.get()), STDOUT_FILENO);
    ::dup2(fileno(err_.get()), STDERR_FILENO);
    become_program(arguments, surroundings);
}

Program::~Program() {
    if (id_ <= 0) return;
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
}

void Program::send(int signal) const {
    ::kill(id_, signal);
}

std::string Program::out() const {
    return contents(out_.get());
}

Outcome Program::wait() {
    int status = 0;
    rusage usage = {};
    while (::wait4(id_, &status, 0, &usage) < 0)
        if (errno != EINTR) throw Error("the program could not be waited for");
    id_ = 0;
    Outcome outcome;
    if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
    outcome.out = contents(out_.get());
    outcome.err = contents(err_.get());
    outcome.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    outcome.peak_bytes = size_t(usage.ru_maxrss) * 1024;
    return outcome;
}

}  // namespace aerie::test
