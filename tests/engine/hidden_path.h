// Plain decoding of a text, and draft trees that contain its continuation.
#pragma once

#include <random>

#include "engine/checks.h"

namespace aerie::test {

inline DraftOptions widest() {
    DraftOptions draft = draft_options("eagle2");
    draft.tree = {kMaxNodes, kMaxDepth, 2};
    return draft;
}

// The tokens of a text, and the logits after each from `first` on, by plain decoding.
struct Plain {
    std::vector<int> tokens;
    int first = 0;
    std::vector<Logits> logits;  // [i] belongs to position first + i

    std::vector<int> prompt() const { return {tokens.begin(), tokens.begin() + first}; }
};

inline Plain decode_plainly(Model& model, const std::vector<int>& tokens, int first, int count) {
    Plain plain{tokens, first, {}};
    auto drafting = model.start_session(draft_options("none"));
    Session& session = *drafting.session;
    session.begin({});
    session.prefill(plain.prompt());
    for (int i = 0; i < count; ++i) {
        const TokenTree root(plain.tokens[size_t(first + i)]);
        session.verify(root);
        plain.logits.push_back(read_logits(model.backend(), session, 0));
        session.commit(root, {{0}, plain.tokens[size_t(first + i + 1)]});
    }
    return plain;
}

// A random tree of `nodes` nodes that contains the true continuation, as deep as it gets, at random
// places. path[d] is the node that holds the true token of depth d.
struct Hidden {
    TokenTree tree;
    std::vector<int> path = {0};
};

inline Hidden hide_path(const Plain& plain, int nodes, int vocab, std::mt19937& random) {
    Hidden hidden{TokenTree(plain.tokens[size_t(plain.first)])};
    std::vector<int> depth = {0};
    while (hidden.tree.size() < nodes) {
        const int deepest = int(hidden.path.size()) - 1;
        const bool extend =
            deepest + 1 < int(plain.logits.size()) && deepest < kMaxDepth && random() % 2 == 0;
        int parent = extend ? hidden.path.back() : int(random() % unsigned(hidden.tree.size()));
        if (depth[size_t(parent)] == kMaxDepth) parent = 0;
        const int token = extend ? plain.tokens[size_t(plain.first + deepest + 1)]
                                 : int(random() % unsigned(vocab));
        if (extend) hidden.path.push_back(hidden.tree.size());
        hidden.tree.add(token, parent);
        depth.push_back(depth[size_t(parent)] + 1);
    }
    return hidden;
}

}  // namespace aerie::test
