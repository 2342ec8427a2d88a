// A rejected token has probability 0 in the remaining p, so the token drawn from it is no child.
#include "engine/ratio.h"

#include <algorithm>

namespace aerie {

bool RatioTrial::accepts(int token, Chance& chance) {
    if (chance.happens(p.of(token) / q.of(token))) return true;
    Distribution rest = excess(p, q);
    if (rest.empty()) return true;  // p and q are equal except for rounding
    p = std::move(rest);
    q.remove(token);
    return false;
}

int choose_by_ratio(RatioTrial trial, std::span<const int> children, Chance& chance) {
    for (int token : children)
        if (trial.accepts(token, chance)) return token;
    return chance.pick(trial.p);
}

NodeList choices_by_ratio(const TokenTree& tree, const Drawn& drawn, const TargetChoice& target,
                          Chance& chance) {
    NodeList choices;
    choices.resize(size_t(tree.size()));
    std::fill(choices.begin(), choices.end(), -1);
    for (int node = 0; node >= 0;) {
        NodeList children, tokens;
        for (int child = node + 1; child < tree.size(); ++child)
            if (tree.parents[size_t(child)] == node) {
                children.push_back(child);
                tokens.push_back(tree.tokens[size_t(child)]);
            }
        const Distribution* q = drawn.of(node);
        const int token = choose_by_ratio({target(node), q ? *q : Distribution{}}, tokens, chance);
        choices[size_t(node)] = token;
        const auto place = std::find(tokens.begin(), tokens.end(), token);
        node = place == tokens.end() ? -1 : children[size_t(place - tokens.begin())];
    }
    return choices;
}

}  // namespace aerie
