// Op Beam: one level of EAGLE-2's expansion (docs/drafting.md section 3): the table, the next
// frontier and its rows. Plain code, since there are only a few hundred candidates.
#include <algorithm>
#include <cassert>

#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

namespace {

constexpr int kMaxCandidates = kMaxFrontier * kMaxTopK;

// Appends the level to the table; returns its first candidate.
Candidate* append_level(const Beam& step) {
    const int k = step.ids.cols;
    Candidate* table = row<Candidate>(step.table, 0);
    Candidate* level = table + step.table_offset;
    const int32_t* frontier = step.from_root ? nullptr : row<int32_t>(step.frontier, 0);
    for (int f = 0; f < step.ids.rows; ++f) {
        const int32_t* ids = row<int32_t>(step.ids, f);
        const float* log_probs = row_f32(step.log_probs, f);
        for (int i = 0; i < k; ++i) {
            Candidate& c = level[f * k + i];
            c.token = ids[i];
            c.parent = frontier ? frontier[f] : -1;
            c.log_prob = log_probs[i];
            c.value = log_probs[i];
            if (frontier && step.sum_values) c.value += table[frontier[f]].value;
        }
    }
    return level;
}

// Candidate numbers of the next frontier, in its order.
void select_best(int32_t* chosen, int width, const Candidate* level, int count) {
    int32_t order[kMaxCandidates];
    for (int i = 0; i < count; ++i) order[i] = i;
    std::partial_sort(order, order + width, order + count,
                      [level](int32_t a, int32_t b) { return better(level, a, b); });
    std::copy_n(order, width, chosen);
}

}  // namespace

template <>
void CpuBackend::execute(const Beam& step) {
    FloatEnvironment environment;
    const int k = step.ids.cols, width = step.next.count();
    const Candidate* level = append_level(step);
    if (width == 0) return;
    int32_t chosen[kMaxFrontier];
    if (step.selection)
        std::copy_n(row<int32_t>(step.selection, 0), width, chosen);
    else
        select_best(chosen, width, level, step.ids.rows * k);
    Row* next = row<Row>(step.next.block, 0);
    for (int i = 0; i < width; ++i) {
        const int parent = chosen[i] / k;
        assert(parent >= 0 && parent < step.ids.rows);
        next[i] = child_row(*row<Row>(step.rows.block, parent), step.from_root,
                            level[chosen[i]].token, step.next_slot + i);
        row<int32_t>(step.parent_row, 0)[i] = parent;
        row<int32_t>(step.frontier, 0)[i] = step.table_offset + chosen[i];
    }
}

}  // namespace aerie::cpu
