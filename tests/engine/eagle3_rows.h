// Rows on which an EAGLE-3 head is compared with itself in doubles: text, and two levels of a tree.
#pragma once

#include "engine/eagle3_forms.h"

namespace aerie::test {

using reference::Eagle3Run;

// The rows that are run: text in two passes, the children of its last row, and their children.
constexpr int kFirstPass = 40, kText = 70;
constexpr int kChildren = 3;
constexpr int kParents[] = {2, 0, 2, 1};  // parents of the second level, as indices of children

inline int token_of(int number) {
    return (number * number * 37 + number * 811 + 5) % kTargetVocab;
}

struct Pass {
    std::vector<Row> rows;
    std::vector<Eagle3Run::Row> plain;  // the same rows for the reference
    std::vector<int> parents;           // rows of the pass before; empty for text
};

inline std::vector<Pass> passes(int sequence) {
    std::vector<Pass> all(4);
    std::vector<int> text;
    for (int p = 0; p < kText; ++p) {
        Pass& pass = all[p < kFirstPass ? 0 : 1];
        pass.rows.push_back(causal_row(token_of(p), p, sequence));
        pass.plain.push_back({token_of(p), p, text});
        text.push_back(p);
    }
    const Row last = all[1].rows.back();
    for (int i = 0; i < kChildren; ++i) {
        all[2].rows.push_back(child_row(last, true, token_of(100 + i), i));
        all[2].plain.push_back({token_of(100 + i), kText, text});
        all[2].parents.push_back(kText - kFirstPass - 1);
    }
    for (int i = 0; i < int(std::size(kParents)); ++i) {
        const int parent = kParents[i], token = token_of(200 + i);
        all[3].rows.push_back(child_row(all[2].rows[size_t(parent)], false, token, kChildren + i));
        std::vector<int> seen = text;
        seen.push_back(kText + parent);
        all[3].plain.push_back({token, kText + 1, seen});
        all[3].parents.push_back(parent);
    }
    return all;
}

// States and logits of each pass.
template <class M>
struct Computed {
    std::vector<M> states, logits;
};

inline Matrix features_of(const Form& form) {
    return reference::random_matrix(kText, int(form.taps.size()) * kTargetHidden, 77, 2);
}

template <class M>
M rows_of(const M& from, const std::vector<int>& numbers) {
    M out(int(numbers.size()), from.cols);
    for (int i = 0; i < out.rows; ++i) std::copy_n(from[numbers[size_t(i)]], from.cols, out[i]);
    return out;
}

inline std::vector<int> text_rows(int first, int count) {
    std::vector<int> rows;
    for (int i = 0; i < count; ++i) rows.push_back(first + i);
    return rows;
}

// Changes the states that the next level's pass reads.
using Feed = std::function<Exact(const Exact& state)>;

inline Computed<Exact> in_doubles(const Eagle3& head, const Form& form,
                                  const std::vector<Pass>& all, const Feed& feed = {}) {
    Eagle3Run run(head);
    Computed<Exact> outcome;
    const Exact features = exact(features_of(form));
    int first = 0;
    for (const Pass& pass : all) {
        const int count = int(pass.rows.size());
        if (pass.parents.empty()) {
            outcome.states.push_back(
                run.read(rows_of(features, text_rows(first, count)), pass.plain));
        } else {
            const Exact parents = rows_of(outcome.states.back(), pass.parents);
            outcome.states.push_back(run.forward(feed ? feed(parents) : parents, pass.plain));
        }
        outcome.logits.push_back(run.logits(outcome.states.back()));
        first += count;
    }
    return outcome;
}

}  // namespace aerie::test
