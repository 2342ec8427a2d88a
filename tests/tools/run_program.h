// The `aerie` program as a child process: its output, its end, the time and memory it takes.
#pragma once

#include <sys/types.h>

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace aerie::test {

struct Surroundings {
    std::filesystem::path folder = {};  // working folder; empty: the current one
    std::string input = {};             // stdin
    std::vector<std::pair<std::string, std::string>> variables = {};
    std::function<void()> before = {};  // called in the child: limits, other files for stdout
};

struct Outcome {
    int exit_code = -1;  // -1: ended by a signal
    int signal = 0;
    std::string out, err;
    double cpu_seconds = 0;
    size_t peak_bytes = 0;  // resident; at least this process's own when it started the child
};

class Program {
  public:
    // Starts the program; AERIE_MODEL and similar variables count only if `surroundings` sets them.
    // After a minute of wall time SIGALRM ends it. Throws Error.
    Program(const std::vector<std::string>& arguments, const Surroundings& surroundings = {});
    ~Program();  // kills the program if it still runs
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void send(int signal) const;
    std::string out() const;  // so far
    Outcome wait();

  private:
    struct CloseFile {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    using File = std::unique_ptr<std::FILE, CloseFile>;

    File in_, out_, err_;
    pid_t id_ = 0;
};

std::filesystem::path program_file();

inline Outcome run(const std::vector<std::string>& arguments,
                   const Surroundings& surroundings = {}) {
    return Program(arguments, surroundings).wait();
}

}  // namespace aerie::test
