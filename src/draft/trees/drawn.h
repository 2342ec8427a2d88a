// The distributions from which the drafts of a tree were drawn.
#pragma once

#include "draft/chance.h"
#include "draft/trees/tree.h"

namespace aerie {

struct Drawn {
    // Input: how the sequence's tokens are chosen, and the key of the random numbers.
    TextRule rule;
    uint64_t seed = 0;
    int position = 0;  // the position that follows the root

    // Output: each node with drawn children, as an entry of the table of candidates (-1: the root),
    // and the distribution that they were drawn from. Empty: nothing was drawn.
    struct Parent {
        int entry;
        Distribution q;
    };
    std::vector<Parent> parents;
    NodeList entries;  // table entry of each node of the tree

    bool any() const { return !parents.empty(); }
    void clear() {
        parents.clear();
        entries.clear();
    }
    // The distribution that the children of a node were drawn from; null if it has none.
    const Distribution* of(int node) const {
        for (const Parent& parent : parents)
            if (parent.entry == entries[size_t(node)]) return &parent.q;
        return nullptr;
    }
};

}  // namespace aerie
