// Two texts of a bundled model in the same passes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/bundled.h"

namespace aerie::test {

struct Together {
    explicit Together(Bundled& model, const std::string& method, DraftOptions draft)
        : limits(model.limits()) {
        draft.method = method;
        limits.sequences_in_pass = 2;
        drafter = model.model().drafter(draft, limits);
        const ModelConfig& config = model.target().config();
        kv = std::make_unique<KvPool>(model.backend(), kv_shape(config, limits, drafter->reach()));
        batch = std::make_unique<Batch>(model.backend(), model.target(), *kv, *drafter, limits);
        for (int i = 0; i < 2; ++i)
            sequences.emplace_back(*kv, *drafter, config.vocab, limits.context);
        for (int i = 0; i < 2; ++i) cycles[i].sequence = &sequences[size_t(i)];
    }

    BatchLimits limits;
    std::unique_ptr<Drafter> drafter;
    std::unique_ptr<KvPool> kv;
    std::unique_ptr<Batch> batch;
    std::vector<Sequence> sequences;
    Cycle cycles[2];
    Cycle* both[2] = {&cycles[0], &cycles[1]};
};

// Runs cycles until the text has at least this length.
inline void extend(Batch& batch, Sequence& sequence, size_t length) {
    Cycle cycle;
    cycle.sequence = &sequence;
    Cycle* const one = &cycle;
    while (sequence.tokens().size() < length) {
        batch.propose({&one, 1});
        batch.verify({&one, 1});
        cycle.path = accept(cycle.tree, cycle.choices);
        batch.commit({&one, 1});
    }
}

inline std::vector<int> first_tokens(const Sequence& sequence, size_t count) {
    return {sequence.tokens().begin(), sequence.tokens().begin() + ptrdiff_t(count)};
}

}  // namespace aerie::test
