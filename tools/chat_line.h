// The input of `aerie chat`: messages of one line or several, and commands.
#pragma once

#include <optional>
#include <string>

namespace aerie {

// Collects lines until they are a whole message: a line that ends in a backslash continues in the
// next, and so does everything between """ and """.
class ChatInput {
  public:
    // Returns true once the text is whole.
    bool add(const std::string& line);
    bool has_begun() const { return has_begun_; }
    // Returns the text that was added, whole or not, and begins a new one.
    struct Text {
        std::string text = {};
        bool is_block = false;  // between """: never a command
    };
    Text take();

  private:
    std::string text_;
    bool has_begun_ = false, has_lines_ = false, is_block_ = false;
};

struct ChatLine {
    enum class Kind {
        nothing,
        message,
        begin_anew,
        system,
        set,
        add_file,
        retry,
        undo,
        save,
        load,
        draft,
        shade,
        think,
        stats,
        help,
        exit
    };
    Kind kind = Kind::nothing;
    std::string text = {};        // message, system message, file
    std::optional<bool> on = {};  // for a switch; unset: toggle it
};

// Throws UsageError for an unknown command, and for one without the argument that it needs.
ChatLine read_chat_line(const ChatInput::Text& input);

// One line for each command.
std::string chat_help();
// The rest that Tab adds to a line that begins with these characters: the rest of a command's name,
// or of a file's after a command that takes one, as far as there is no choice. May be empty.
std::string completed_chat_line(const std::string& line);

}  // namespace aerie
