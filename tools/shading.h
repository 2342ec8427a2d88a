// Shows drafted tokens in another colour.
#pragma once

#include <string>
#include <string_view>

namespace aerie {

class Shading {
  public:
    explicit Shading(bool on) : on_(on) {}

    // The text, after an escape sequence if the colour changes.
    std::string put(std::string_view text, bool is_drafted) {
        if (text.empty()) return {};
        return turn(is_drafted) + std::string(text);
    }
    // Returns to the terminal's own colour.
    std::string end() { return turn(false); }

  private:
    std::string turn(bool shaded) {
        if (!on_ || shaded == shaded_) return {};
        shaded_ = shaded;
        return shaded ? "\033[36m" : "\033[39m";
    }

    bool on_, shaded_ = false;
};

}  // namespace aerie
