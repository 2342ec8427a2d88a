// What can be asked of a drafter.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "draft/tree.h"

namespace aerie {

// Sees the candidates table[first, last) of a new level before they are ranked, and may rewrite
// their tokens, values and log-probabilities (recording, forcing).
using LevelHook = std::function<void(std::span<Candidate> table, int first, int last)>;

// How candidates are ranked at temperature > 0 (eagle.md section 10). Output is the same.
enum class Proposals { coupled, plain };

// How drafts are accepted at temperature > 0. keyed: where they are what the target chooses with
// its position's noise; the text is that of plain decoding. ratio: drawn from q, with probability
// min(1, p / q) (Leviathan et al. 2023, SpecInfer); the text is another one of its distribution.
enum class AcceptRule { keyed, ratio };

// Of Lookahead decoding: columns of the window, tokens of an n-gram, and the most n-grams that are
// verified in a pass. The reference's WINDOW, LEVEL and GUESS.
struct LookaheadShape {
    int window = 7, ngram = 5, guesses = 7;

    int nodes() const { return (ngram - 1) * (window + guesses) + 1; }
    int depth() const { return std::max(window + ngram - 3, ngram - 1); }
};
// Throws UsageError unless 1 <= W, 2 <= N, 1 <= G, (N - 1) (W + G) <= 63 and W + N - 3 <= 32.
void check_lookahead_shape(const LookaheadShape& shape);

struct DraftOptions {
    std::string method = "none";  // a row of draft/methods.h
    int chain_length = 5;
    std::optional<TreeShape> tree;         // of grown trees; unset: chosen by measurement, or
    bool is_published = false;             // the tree that the drafter was published with
    std::optional<TreePaths> static_tree;  // of EAGLE-1, Medusa, Hydra; unset: as they say
    LookaheadShape lookahead;
    Proposals proposals = Proposals::coupled;
    AcceptRule accept = AcceptRule::keyed;
    bool use_value = true;  // ablations of EAGLE-2, Table 3
    bool rerank = true;
    // A policy asked for the shape of each cycle's tree; none of its parts may exceed `tree`,
    // which must be set.
    std::function<TreeShape()> shape_policy;
    LevelHook on_level;            // may be empty; where it is set, levels are chosen on the host
    Clock clock = steady_seconds;  // of what is chosen by measurement
};

}  // namespace aerie
