// What is typed into `aerie chat`: messages of one line or several, and commands.
#pragma once

#include <optional>
#include <string>

namespace aerie {

// Lines until they are a whole message: one that ends in a backslash goes on in the next, and so
// does all between """ and """.
class ChatInput {
  public:
    // True once the text is whole.
    bool add(const std::string& line);
    bool has_begun() const { return has_begun_; }
    // What was added, whole or not; nothing is left.
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
        system,
        retry,
        undo,
        save,
        load,
        draft,
        shade,
        stats,
        help,
        exit
    };
    Kind kind = Kind::nothing;
    std::string text = {};        // message, system message, file
    std::optional<bool> on = {};  // of a switch; unset: the other way
};

// Throws UsageError: an unknown command, or one that is not given what it needs.
ChatLine read_chat_line(const ChatInput::Text& input);

// A line for each command.
std::string chat_help();

}  // namespace aerie
