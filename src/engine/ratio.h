// Rejection sampling: a drafted token x is accepted with probability min(1, p(x) / q(x)); if no
// child is accepted, the token is drawn from the remaining p (Leviathan et al. 2023, Chen et al.
// 2023; docs/drafting.md section 5). Siblings are tried in the order in which they were drawn
// without replacement (SpecInfer, EAGLE-1). This keeps the distribution of plain decoding, but not
// its text.
#pragma once

#include <functional>
#include <span>

#include "draft/trees/drawn.h"

namespace aerie {

// Tries the children of a node one after the other.
struct RatioTrial {
    Distribution p;  // the target's distribution; after rejections the rest of it
    Distribution q;  // the distribution that the next child was drawn from

    // Whether a child is accepted.
    bool accepts(int token, Chance& chance);
};

// Chooses the token after a node: one of its children, or a token drawn from the remaining p.
int choose_by_ratio(RatioTrial trial, std::span<const int> children, Chance& chance);

// The distribution of the target's choice after a node, with filters and penalties applied.
using TargetChoice = std::function<Distribution(int node)>;

// The token after each node on the accepted path, -1 after the others; accept() then finds the
// path.
NodeList choices_by_ratio(const TokenTree& tree, const Drawn& drawn, const TargetChoice& target,
                          Chance& chance);

}  // namespace aerie
