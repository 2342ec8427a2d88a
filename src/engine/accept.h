// Lossless acceptance: the target's own choices are the only tokens ever emitted.
#pragma once

#include <span>

#include "draft/tree.h"

namespace aerie {

// Accepted nodes from the root on, and the token that the target chose after the last of them.
struct Path {
    DepthList<int> nodes;
    int next = 0;
};

// choices[i]: what the target chose after node i. Descends while the choice is a child.
Path accept(const TokenTree& tree, std::span<const int> choices);

}  // namespace aerie
