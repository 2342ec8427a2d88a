// A program in its own terminal, driven by keys: tmux, with a server for each test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace aerie::test {

// The text as one word of a shell command.
inline std::string quoted(const std::string& text) {
    std::string word = "'";
    for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return word + "'";
}

// The output of a command, including its errors.
inline std::string output_of(const std::string& command) {
    std::string text;
    std::FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (!pipe) return text;
    char block[4096];
    while (const size_t got = std::fread(block, 1, sizeof(block), pipe)) text.append(block, got);
    ::pclose(pipe);
    return text;
}

class Tmux {
  public:
    static bool is_here() { return output_of("tmux -V").starts_with("tmux ") && has_terminals(); }

    // The server's socket lies in the folder. The pane has 160 columns and 50 lines.
    Tmux(const std::filesystem::path& folder, const std::string& command)
        : tmux_("env -u TMUX tmux -S " +
                quoted((folder / ("tmux" + std::to_string(next_server()))).string()) +
                " -f /dev/null ") {
        // The option comes first: a program may end before a second call of tmux.
        output_of(tmux_ +
                  "start-server \\; set-option -g remain-on-exit on \\; "
                  "new-session -d -x 160 -y 50 " +
                  quoted(command));
    }
    ~Tmux() { output_of(tmux_ + "kill-server"); }
    Tmux(const Tmux&) = delete;
    Tmux& operator=(const Tmux&) = delete;

    void type(const std::string& text) const {
        output_of(tmux_ + "send-keys -l -- " + quoted(text));
    }
    void key(const std::string& name) const { output_of(tmux_ + "send-keys " + name); }
    void enter(const std::string& line) const {
        type(line);
        key("Enter");
    }
    // As a terminal does that marks what is pasted.
    void paste(const std::string& text) const {
        output_of(tmux_ + "set-buffer -- " + quoted(text));
        output_of(tmux_ + "paste-buffer -p -r");
    }
    void resize(int columns, int rows) const {
        output_of(tmux_ + "resize-window -x " + std::to_string(columns) + " -y " +
                  std::to_string(rows));
    }

    // The text of the pane, with wrapped lines joined; with its colours if asked.
    std::string shown(bool with_colours = false) const {
        return output_of(tmux_ + "capture-pane -p -J -S - " + (with_colours ? "-e" : ""));
    }
    // The last line, without blanks at its end.
    std::string last_line() const {
        std::string text = shown();
        text.erase(text.find_last_not_of(" \n") + 1);
        return text.substr(text.rfind('\n') + 1);
    }
    bool has_ended() const {
        return output_of(tmux_ + "display-message -p '#{pane_dead}'").starts_with("1");
    }
    // As a shell gives it: 128 + the number of the signal that ended the program, if one did.
    int exit_code() const {
        const auto value = [&](const std::string& variable) {
            return output_of(tmux_ + "display-message -p '#{" + variable + "}'");
        };
        const std::string signal = value("pane_dead_signal");  // a number or a name, by version
        for (const auto& [name, number] : {std::pair("INT", SIGINT), {"TERM", SIGTERM}})
            if (signal.find(name) != signal.npos || std::atoi(signal.c_str()) == number)
                return 128 + number;
        return std::atoi(value("pane_dead_status").c_str());
    }

    // Waits until the condition holds; fails the test after a minute.
    template <typename Condition>
    void wait_until(const std::string& what, Condition condition) const {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
        do {
            if (condition()) return;
            ::usleep(100'000);
        } while (std::chrono::steady_clock::now() < end);
        ADD_FAILURE() << "not seen: " << what << "\n" << shown();
    }
    void wait_for(const std::string& text) const {
        wait_until(text, [&] { return shown().find(text) != std::string::npos; });
    }
    // Waits until the program waits for a line.
    void wait_for_prompt() const {
        wait_until("a prompt", [&] { return last_line() == ">"; });
    }

  private:
    // Some root file systems have no /dev/pts.
    static bool has_terminals() {
        const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY);
        if (terminal >= 0) ::close(terminal);
        return terminal >= 0;
    }
    // Each server has its own number: a server that is about to end may still be at its socket.
    static int next_server() {
        static int number = 0;
        return ++number;
    }

    std::string tmux_;
};

}  // namespace aerie::test
