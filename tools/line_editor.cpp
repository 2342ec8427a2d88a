// The line editor is libedit's except for waiting: the program handles signals itself, and Ctrl-C
// is a key like any other.
#include <histedit.h>
#include <langinfo.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "core/utf8.h"
#include "line_history.h"
#include "line_reader.h"
#include "terminal.h"

namespace aerie {

namespace {

constexpr int kLookMilliseconds = 200;  // for signals that came before poll

volatile std::sig_atomic_t terminal_changed = 0;

void note_change(int) {
    terminal_changed = 1;
}

// libedit encodes characters by the locale.
void write_utf8() {
    std::setlocale(LC_CTYPE, "");
    if (std::strcmp(nl_langinfo(CODESET), "UTF-8") != 0) std::setlocale(LC_CTYPE, "C.UTF-8");
}

class LineEditor : public LineReader {
  public:
    explicit LineEditor(const std::filesystem::path& file)
        : past_(file), history_(history_init()), editor_(el_init("aerie", stdin, stderr, stderr)) {
        if (!usable()) return;
        HistEvent event;
        history(history_, &event, H_SETSIZE, 1000);
        history(history_, &event, H_SETUNIQUE, 1);
        for (const std::string& line : past_.lines())
            history(history_, &event, H_ENTER, line.c_str());
        set_up();
        struct sigaction action = {};
        action.sa_handler = note_change;
        action.sa_flags = SA_RESTART;  // poll returns all the same
        for (const int signal : {SIGWINCH, SIGCONT}) ::sigaction(signal, &action, nullptr);
    }
    ~LineEditor() override {
        if (editor_) el_end(editor_);
        if (history_) history_end(history_);
    }
    LineEditor(const LineEditor&) = delete;
    LineEditor& operator=(const LineEditor&) = delete;

    bool usable() const { return editor_ && history_; }

    Got read(const std::string& prompt, std::string& line) override {
        prompt_ = prompt;
        is_cleared_ = false;
        int count = 0;
        const char* got = el_gets(editor_, &count);
        if (is_cleared_ || !got || count <= 0) {
            tell("\n");
            return is_cleared_ ? Got::cleared : Got::end;
        }
        line = got;
        while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
        past_.add(line);
        HistEvent event;
        if (!line.empty()) history(history_, &event, H_ENTER, line.c_str());
        return Got::line;
    }

  private:
    void set_up() {
        el_set(editor_, EL_CLIENTDATA, this);
        el_set(editor_, EL_PROMPT, &LineEditor::prompt);
        el_set(editor_, EL_HIST, history, history_);
        el_set(editor_, EL_EDITOR, "emacs");
        el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
        el_source(editor_, nullptr);  // the user's own settings
        // With char names, libedit would copy them and never free the copies.
        el_wset(editor_, EL_ADDFN, L"aerie-clear", L"Throw the line away", &LineEditor::clear);
        el_wset(editor_, EL_ADDFN, L"aerie-suspend", L"Back to the shell", &LineEditor::suspend);
        for (const auto& [key, function] :
             {std::pair("^C", "aerie-clear"), {"^Z", "aerie-suspend"}}) {
            el_set(editor_, EL_BIND, key, function, nullptr);
            el_set(editor_, EL_BIND, "-a", key, function, nullptr);
        }
        el_set(editor_, EL_SETTY, "-d", "-isig", nullptr);  // while a line is edited
        el_set(editor_, EL_GETCFN, &LineEditor::read_char);
    }

    static LineEditor& self(EditLine* editor) {
        void* data = nullptr;
        el_get(editor, EL_CLIENTDATA, &data);
        return *static_cast<LineEditor*>(data);
    }

    // Callbacks of libedit.
    static char* prompt(EditLine* editor) { return self(editor).prompt_.data(); }
    static unsigned char clear(EditLine* editor, int) {
        self(editor).is_cleared_ = true;
        return CC_NEWLINE;
    }
    // As the terminal does where keys are signals, except that the shell gets its own settings
    // back.
    static unsigned char suspend(EditLine* editor, int) {
        el_set(editor, EL_PREP_TERM, 0);
        ::kill(0, SIGTSTP);
        el_set(editor, EL_PREP_TERM, 1);
        return CC_NORM;
    }
    static int read_char(EditLine* editor, wchar_t* character) {
        return self(editor).wait_for(*character);
    }

    // Returns 1, 0 at the end of the input, -1 to leave.
    int wait_for(wchar_t& character) {
        while (typed_.empty()) {
            pollfd input = {STDIN_FILENO, POLLIN, 0};
            const int ready = ::poll(&input, 1, kLookMilliseconds);
            if (interrupted()) return -1;
            if (terminal_changed) show_again();
            if (ready <= 0) continue;
            char byte = 0;
            const ssize_t got = ::read(STDIN_FILENO, &byte, 1);
            if (got == 0) return 0;
            if (got < 0 && errno != EINTR) return -1;
            if (got < 0) continue;
            bytes_ += byte;
            bytes_.erase(0, append_utf8(typed_, bytes_, false));
        }
        std::string_view rest = typed_;
        character = wchar_t(take_char(rest));
        typed_ = rest;
        return 1;
    }

    // Draws the line again after a change of the window's size, or after the shell had the
    // terminal.
    void show_again() {
        terminal_changed = 0;
        el_resize(editor_);
        el_set(editor_, EL_PREP_TERM, 0);
        el_set(editor_, EL_PREP_TERM, 1);
        std::fputs("\r\033[K", stderr);  // libedit assumes that the line is empty
        el_set(editor_, EL_REFRESH);
    }

    LineHistory past_;
    std::string prompt_;
    std::string bytes_;  // bytes of an incomplete character
    std::string typed_;  // characters that the editor has not read yet
    bool is_cleared_ = false;
    History* history_;
    EditLine* editor_;
};

}  // namespace

std::unique_ptr<LineReader> make_line_editor(const std::filesystem::path& history) {
    const char* kind = std::getenv("TERM");
    if (!kind || !*kind || std::string_view(kind) == "dumb" || !::isatty(STDERR_FILENO))
        return nullptr;
    write_utf8();
    auto editor = std::make_unique<LineEditor>(history);
    if (!editor->usable()) return nullptr;
    return editor;
}

}  // namespace aerie
