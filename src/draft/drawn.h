// What the drafts of a tree were drawn from.
#pragma once

#include "draft/chance.h"
#include "draft/tree.h"

namespace aerie {

struct Drawn {
    // The wish: how the text's tokens are chosen, and what the drafts' numbers depend on.
    TextRule rule;
    uint64_t seed = 0;
    int position = 0;  // that follows the root

    // What came of it: each node whose children were drawn, first as an entry of the table of
    // candidates (-1: the root), and what from. Empty: nothing was drawn.
    struct Parent {
        int entry;
        Distribution q;
    };
    std::vector<Parent> parents;
    NodeList entries;  // of each node of the tree

    bool any() const { return !parents.empty(); }
    void clear() {
        parents.clear();
        entries.clear();
    }
    // What the children of a node were drawn from; null: it has none.
    const Distribution* of(int node) const {
        for (const Parent& parent : parents)
            if (parent.entry == entries[size_t(node)]) return &parent.q;
        return nullptr;
    }
};

}  // namespace aerie
