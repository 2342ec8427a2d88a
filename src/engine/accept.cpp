// One scan suffices, because parents come first.
#include "engine/accept.h"

namespace aerie {

Path accept(const TokenTree& tree, std::span<const int> choices) {
    Path path{{0}, choices[0]};
    for (int node = 1; node < tree.size(); ++node)
        if (tree.parents[node] == path.nodes.back() && tree.tokens[node] == path.next) {
            path.nodes.push_back(node);
            path.next = choices[size_t(node)];
        }
    return path;
}

}  // namespace aerie
