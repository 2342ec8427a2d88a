// Checks that top_k answers in target ids if the draft vocabulary is a part of the target's. The
// check is separate from its test, so that a planted fault meets the same check.
#pragma once

#include <string>
#include <vector>

#include "backend/backend.h"

namespace aerie::test {

// Every draft id is the best candidate of one row. Returns an empty string, or what is wrong, for
// people.
inline std::string mapped_ids_finding(Backend& be) {
    constexpr int kDraftVocab = 50, kBest = 5;
    const auto target_id = [](int draft_id) { return 1000 + 3 * draft_id; };
    std::vector<float> logits(kDraftVocab * kDraftVocab);
    std::vector<int32_t> map(kDraftVocab), ids(kDraftVocab * kBest);
    for (int row = 0; row < kDraftVocab; ++row) {
        map[size_t(row)] = target_id(row);
        for (int rank = 0; rank < kDraftVocab; ++rank)
            logits[size_t(row * kDraftVocab + (row + rank) % kDraftVocab)] = -0.5f * float(rank);
    }
    const auto place = [&](Buffer& memory, DType type, int rows, int cols) {
        memory = be.allocate(dense_bytes(type, rows, cols));
        return dense(memory.get(), type, rows, cols);
    };
    Buffer memory[4];
    TopK step;
    step.choice.logits = place(memory[0], DType::F32, kDraftVocab, kDraftVocab);
    step.choice.id_map = place(memory[1], DType::I32, 1, kDraftVocab);
    step.ids = place(memory[2], DType::I32, kDraftVocab, kBest);
    step.log_probs = place(memory[3], DType::F32, kDraftVocab, kBest);
    be.write(step.choice.logits, logits.data());
    be.write(step.choice.id_map, map.data());
    be.run(step);
    be.read(step.ids, ids.data());
    for (int row = 0; row < kDraftVocab; ++row)
        for (int rank = 0; rank < kBest; ++rank) {
            const int draft_id = (row + rank) % kDraftVocab;
            if (const int got = ids[size_t(row * kBest + rank)]; got != target_id(draft_id))
                return "draft id " + std::to_string(draft_id) + " comes out as " +
                       std::to_string(got) + " instead of " + std::to_string(target_id(draft_id));
        }
    return "";
}

}  // namespace aerie::test
