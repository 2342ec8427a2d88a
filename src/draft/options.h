// Options of drafters.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "draft/trees/tree.h"

namespace aerie {

class DraftState;

// Sees the candidates table[first, last) of a new level of a sequence's tree before they are
// ranked, and may rewrite their tokens, values and log-probabilities (recording, forcing).
using LevelHook =
    std::function<void(const DraftState& of, std::span<Candidate> table, int first, int last)>;

// How candidates are ranked at temperature > 0 (docs/drafting.md section 10). The output is the
// same.
enum class Proposals { coupled, plain };

// How drafts are accepted at temperature > 0 (docs/drafting.md sections 5 and 10). keyed: a draft
// is accepted if the target, with its position's noise, chooses the same token; the text is that of
// plain decoding. ratio: drafts are drawn from q and accepted with probability min(1, p / q)
// (Leviathan et al. 2023, SpecInfer); the text differs, but comes from the same distribution.
enum class AcceptRule { keyed, ratio };

// Parameters of lookahead decoding, W, N and G of the paper: columns of the window, tokens of an
// n-gram, and the most n-grams that a pass verifies. The reference calls them WINDOW, LEVEL, GUESS.
struct LookaheadShape {
    int window = 7, ngram = 5, guesses = 7;

    // Nodes of a pass, the root included.
    int nodes() const { return (ngram - 1) * (window + guesses) + 1; }
    int depth() const { return std::max(window + ngram - 3, ngram - 1); }
};
// Throws UsageError unless 1 <= W, 2 <= N, 1 <= G, (N - 1) (W + G) <= 63 and W + N - 3 <= 32.
void check_lookahead_shape(const LookaheadShape& shape);

struct DraftOptions {
    std::string method = "none";  // name of a row in draft/methods.h
    // Each of the next four fixes the trees of the methods that it concerns. Where none does, trees
    // are sized by measurement.
    std::optional<TreeShape> tree;         // shape of grown trees
    std::optional<TreePaths> static_tree;  // for EAGLE-1, Medusa, Hydra
    std::optional<int> chain_length;       // for chains
    std::optional<LookaheadShape> lookahead;
    bool is_published = false;  // the published tree of a method, if nothing above fixes it
    Proposals proposals = Proposals::coupled;
    AcceptRule accept = AcceptRule::keyed;
    bool use_value = true;  // ablations of EAGLE-2, Table 3
    bool rerank = true;
    // Called in each cycle for the shape of its tree. `tree` must be set, and no part of the shape
    // may exceed it.
    std::function<TreeShape()> shape_policy;
    LevelHook on_level;            // may be empty; if set, levels are chosen on the host
    Clock clock = steady_seconds;  // times trees that are sized by measurement

    // Whether measured costs cut a static tree or a chain that none of the above fixes. Drafts that
    // are drawn need trees that are known beforehand.
    bool cuts_fixed_trees() const { return !is_published && accept == AcceptRule::keyed; }
};

}  // namespace aerie
