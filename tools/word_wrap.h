// Breaks text between words as it comes, so that a terminal does not break within them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "shading.h"

namespace aerie {

class WordWrap {
  public:
    struct Piece {
        std::string text;
        Marks marks;
    };

    // Returns what can be shown, which lacks the last word until its end is known. `width`: columns
    // of a line; 0: nothing is broken or held back.
    std::vector<Piece> put(std::string_view text, Marks marks, int width);
    // Returns the last word; the next text begins a line.
    std::vector<Piece> end();

  private:
    void show_word();

    std::vector<Piece> word_, shown_;
    int word_columns_ = 0, column_ = 0;
    int width_ = 0;  // columns for the newest text
};

// The text, or "..." and its end if it takes more columns, so that a line which is shown again and
// again stays one line. `columns` 0: nothing is cut.
std::string last_columns(std::string_view text, int columns);

}  // namespace aerie
