// Texts that a head learns from in one step, with what the target made of them.
#pragma once

#include <span>
#include <vector>

#include "backend/training.h"

namespace aerie::train {

// Sequences of L tokens, one behind the other. A sequence has L - 1 rows: row i pairs the feature
// at position i with token i + 1, and its goal is the target's distribution at position i + 1.
struct TrainingTexts {
    std::vector<std::vector<int>> tokens;  // each sequence, at least two tokens
    std::vector<std::vector<bool>> mask;   // whether a token belongs to an answer

    int sequences() const { return int(tokens.size()); }
    int rows() const;
    int all_tokens() const;
    std::vector<int> first_rows() const;          // [sequences + 1]
    std::vector<int> positions(int depth) const;  // [rows]: i + depth
    // [rows]: token i + 1 + depth of the row's sequence, or its last token beyond the end.
    std::vector<int> next_tokens(int depth) const;
};

// The outputs of the target; rows as above.
struct TargetOutputs {
    Matrix features;  // [rows, taps * hidden] of position i
    Matrix goals;     // EAGLE-2: [rows, hidden], the features of position i + 1
    // [rows, draft vocabulary]: the softmax of the logits at position i + 1 over the draft
    // vocabulary.
    Matrix targets;
    // [rows]: whether the best token at position i + 1 is in the draft vocabulary.
    std::vector<bool> can_be_said;
};

// [rows]: the row of `targets` that each row of a depth is compared with, which is the one of its
// sequence `depth` rows later; -1 for a row that does not count.
std::vector<int> counted_rows(const TrainingTexts& texts, const std::vector<bool>& can_be_said,
                              int depth);

// The rows of counted_rows() that count, and the rows that they are compared with.
struct CountedRows {
    explicit CountedRows(std::span<const int> counted);

    int count() const { return int(rows.size()); }
    std::vector<int> rows, targets;
};

// Whether a loss also adds its gradient to those of the head's parameters.
enum class Gradient { no, yes };

// The result of a step at one depth, over the rows that count.
struct DepthLoss {
    double sum = 0;  // cross-entropy
    int rows = 0;
    int hits = 0;  // rows where the head's best token is the target's
};

}  // namespace aerie::train
