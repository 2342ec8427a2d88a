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
#include <string>
#include <string_view>
#include <utility>

#include "chat_line.h"
#include "core/utf8.h"
#include "line_history.h"
#include "line_reader.h"
#include "terminal.h"

namespace aerie {

namespace {

// A terminal in this mode puts marks around what is pasted (xterm's "bracketed paste").
constexpr char kPastesBegin[] = "\033[?2004h", kPastesEnd[] = "\033[?2004l";
constexpr std::wstring_view kPasteEnd = L"\033[201~";
// The line break of a pasted text, as the line shows it.
constexpr wchar_t kShownLineBreak = L'\u23CE';
constexpr std::string_view kLineBreak = "\xE2\x8F\x8E";

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
        std::fputs(kPastesBegin, stderr);
        const char* got = el_gets(editor_, &count);
        std::fputs(kPastesEnd, stderr);
        if (is_cleared_ || !got || count <= 0) {
            tell("\n");
            if (is_cleared_ && was_empty_) print_note("(Ctrl-D or /bye leaves)");
            return is_cleared_ ? Got::cleared : Got::end;
        }
        line = got;
        while (line.ends_with('\n') || line.ends_with('\r')) line.pop_back();
        past_.add(line);
        HistEvent event;
        if (!line.empty()) history(history_, &event, H_ENTER, line.c_str());
        for (size_t at = 0; (at = line.find(kLineBreak, at)) != line.npos;)
            line.replace(at, kLineBreak.size(), "\n");
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
        el_wset(editor_, EL_ADDFN, L"aerie-paste", L"Take what is pasted", &LineEditor::paste);
        el_wset(editor_, EL_ADDFN, L"aerie-complete", L"Complete a word", &LineEditor::complete);
        for (const auto& [key, function] : {std::pair("^C", "aerie-clear"),
                                            {"^Z", "aerie-suspend"},
                                            {"\\e[200~", "aerie-paste"},
                                            {"^I", "aerie-complete"}}) {
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
        const LineInfo* line = el_line(editor);
        self(editor).was_empty_ = line->lastchar == line->buffer;
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
    // The pasted text, up to the terminal's mark at its end, becomes part of the line.
    static unsigned char paste(EditLine* editor, int) {
        std::wstring text;
        wchar_t character = 0;
        while (!text.ends_with(kPasteEnd)) {
            if (self(editor).wait_for(character) != 1) return CC_EOF;
            if (character == L'\r') character = L'\n';
            text += character;
        }
        text.resize(text.size() - kPasteEnd.size());
        while (text.ends_with(L'\n')) text.pop_back();
        for (wchar_t& c : text)
            if (c == L'\n') c = kShownLineBreak;
        // A failure means that the line is too long for the editor.
        return text.empty() || el_winsertstr(editor, text.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
    }
    // Completes a command at the line's beginning, and the name of a file after it.
    static unsigned char complete(EditLine* editor, int) {
        const LineInfo* line = el_line(editor);
        const std::string more =
            completed_chat_line(std::string(line->buffer, size_t(line->cursor - line->buffer)));
        return !more.empty() && el_insertstr(editor, more.c_str()) == 0 ? CC_REFRESH : CC_ERROR;
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
    std::string bytes_;                            // bytes of an incomplete character
    std::string typed_;                            // characters that the editor has not read yet
    bool is_cleared_ = false, was_empty_ = false;  // by Ctrl-C; whether nothing was typed before it
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
