// Candidates that are drawn from the head's distribution instead of ranked, as AcceptRule::ratio
// requires.
#include <algorithm>
#include <cmath>
#include <limits>

#include "draft/tree_grower.h"

namespace aerie {

// Tokens on the path to this table entry, its own first; none for -1.
PathTokens TreeGrower::path_of(int entry) const {
    PathTokens path;
    for (; entry >= 0; entry = table_[size_t(entry)].parent)
        path.push_back(table_[size_t(entry)].token);
    return path;
}

// Draws k candidates for each row of the level with computed logits, in the layout of append_level.
// If fewer can be drawn, the remaining candidates have value -inf.
void TreeGrower::draw(const Frontier& frontier, int first, int k, Drawn& drawn, Chance& chance) {
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    const size_t count = rows_.size() * size_t(k);
    std::fill_n(ids_.begin(), count, 0);
    std::fill_n(log_probs_.begin(), count, kNever);
    for (size_t row = 0; row < rows_.size(); ++row) {
        const int entry = first < 0 ? -1 : first + frontier[row];
        if (entry >= 0 && table_[size_t(entry)].log_prob == kNever) continue;
        be_.read(scratch_.logits.row_range(int(row), 1), logits_.data());
        Distribution q = processed(logits_, drawn.rule, path_of(entry), target_ids_);
        size_t at = row * size_t(k);
        for (int token : aerie::draw(q, k, chance)) {
            ids_[at] = token;
            log_probs_[at++] = float(std::log(q.of(token)));
        }
        if (!q.empty()) drawn.parents.push_back({entry, std::move(q)});
    }
}

}  // namespace aerie
