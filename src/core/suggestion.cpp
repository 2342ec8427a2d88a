#include "core/suggestion.h"

#include <algorithm>

namespace aerie {

namespace {

// The letters to insert, to leave out, to replace or to swap with their neighbour so that one word
// becomes the other (the optimal string alignment distance).
int distance(std::string_view a, std::string_view b) {
    std::vector<std::vector<int>> least(a.size() + 1, std::vector<int>(b.size() + 1));
    for (size_t i = 0; i <= a.size(); ++i)
        for (size_t j = 0; j <= b.size(); ++j) {
            if (i == 0 || j == 0) {
                least[i][j] = int(i + j);
                continue;
            }
            least[i][j] = std::min({least[i - 1][j] + 1, least[i][j - 1] + 1,
                                    least[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                least[i][j] = std::min(least[i][j], least[i - 2][j - 2] + 1);
        }
    return least[a.size()][b.size()];
}

}  // namespace

std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
    constexpr size_t kLongest = 40;  // no name is as long; bounds the time
    if (word.size() > kLongest) return "";
    const std::string* best = nullptr;
    int least = std::max(1, int(word.size()) / 3) + 1;
    for (const std::string& name : names) {
        const bool is_begun = word.size() > 2 && name.starts_with(word);
        const int edits = is_begun ? 0 : distance(word, name);
        if (edits >= least) continue;
        least = edits;
        best = &name;
    }
    return best ? "; did you mean " + *best + "?" : "";
}

}  // namespace aerie
