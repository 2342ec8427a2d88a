// Lossless acceptance: every token that is put out is the target's own choice.
#pragma once

#include <span>

#include "draft/trees/tree.h"

namespace aerie {

// The accepted nodes from the root on, and the target's choice after the last of them.
struct Path {
    DepthList<int> nodes;
    int next = 0;
};

// choices[i] is the target's choice after node i. Descends from the root as long as the choice is a
// child of the node.
Path accept(const TokenTree& tree, std::span<const int> choices);

}  // namespace aerie
