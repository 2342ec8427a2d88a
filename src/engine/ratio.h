// Speculative sampling: a drafted token x is accepted with probability min(1, p(x) / q(x)), what is
// left of p is drawn from where none is (Leviathan et al. 2023, Chen et al. 2023); siblings in the
// order in which they were drawn without replacement (SpecInfer, EAGLE-1). It keeps the
// distribution of plain decoding, not its text.
#pragma once

#include <functional>
#include <span>

#include "draft/drawn.h"

namespace aerie {

// The children of a node, one after the other.
struct RatioTrial {
    Distribution p;  // the target's; what is left of it after rejections
    Distribution q;  // what the next child was drawn from

    // Whether a child is accepted.
    bool accepts(int token, Chance& chance);
};

// The token after a node whose children are these: one of them, or what is left of p.
int choose_by_ratio(RatioTrial trial, std::span<const int> children, Chance& chance);

// Distribution of the target's choice after a node, with all that the text is chosen by.
using TargetChoice = std::function<Distribution(int node)>;

// The token after each node that the way through the tree visits, -1 after others: accept() then
// finds the way.
NodeList choices_by_ratio(const TokenTree& tree, const Drawn& drawn, const TargetChoice& target,
                          Chance& chance);

}  // namespace aerie
