#include "help.h"

#include <string_view>

namespace aerie {

namespace {

constexpr size_t kColumns = 100;

class HelpFormatter : public CLI::Formatter {
  public:
    std::string make_option_desc(const CLI::Option* option) const override {
        return wrapped(option->get_description());
    }

  private:
    std::string wrapped(std::string_view text) const {
        const size_t width = kColumns - get_column_width();
        std::string lines;
        size_t column = 0;
        while (!text.empty()) {
            const size_t end = text.find_first_of(" \n");
            const std::string_view word = text.substr(0, end);
            if (column > 0 && column + 1 + word.size() > width) {
                lines += '\n';
                column = 0;
            } else if (column > 0) {
                lines += ' ';
                ++column;
            }
            lines += word;
            column += word.size();
            if (end == text.npos) break;
            if (text[end] == '\n') {
                lines += '\n';
                column = 0;
            }
            text.remove_prefix(end + 1);
        }
        return lines;
    }
};

}  // namespace

std::shared_ptr<CLI::Formatter> help_formatter() {
    return std::make_shared<HelpFormatter>();
}

}  // namespace aerie
