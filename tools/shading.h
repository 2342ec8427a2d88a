// Colours of a shown answer: drafted tokens, and what a reasoning model thinks.
#pragma once

#include <string>
#include <string_view>

namespace aerie {

// Properties of a piece of shown text.
struct Marks {
    bool is_drafted = false, is_thought = false;
    bool operator==(const Marks&) const = default;
};

class Shading {
  public:
    // `drafts`: drafted tokens have a colour. `thoughts`: thoughts are dim.
    Shading(bool drafts, bool thoughts) : drafts_(drafts), thoughts_(thoughts) {}

    // The text, after escape sequences if its look is another one than that of the text before.
    std::string put(std::string_view text, Marks marks) {
        if (text.empty()) return {};
        return turn({drafts_ && marks.is_drafted, thoughts_ && marks.is_thought}) +
               std::string(text);
    }
    // Returns to the terminal's own colours.
    std::string end() { return turn({}); }

  private:
    std::string turn(Marks to) {
        std::string escapes;
        if (to.is_drafted != now_.is_drafted) escapes += to.is_drafted ? "\033[36m" : "\033[39m";
        if (to.is_thought != now_.is_thought) escapes += to.is_thought ? "\033[2m" : "\033[22m";
        now_ = to;
        return escapes;
    }

    bool drafts_, thoughts_;
    Marks now_;
};

}  // namespace aerie
