// Runs the target over texts, in its own weight types and on its own device, and turns its outputs
// into what a head is trained with.
#pragma once

#include "model/kv_pool.h"
#include "model/target.h"
#include "train/batch.h"

namespace aerie::train {

// The target's tokens that a head can draft.
struct DraftVocabulary {
    std::vector<int> ids;   // ascending
    std::vector<bool> has;  // by token of the target

    int size() const { return int(ids.size()); }
    static DraftVocabulary all(int vocab);
    static DraftVocabulary of(std::vector<int> ids, int vocab);
    // The `size` tokens that answers contain most often; ties go to the lowest id. Tokens that no
    // answer contains fill up what is left, in ascending order.
    static DraftVocabulary most_frequent(const TrainingTexts& texts, int vocab, int size);
};

class TargetReader {
  public:
    // Texts have at most `positions` tokens. With `goals`, features of the next position are kept,
    // too. Throws Error.
    TargetReader(Backend& backend, Target& target, TrainingDevice& device, int positions, Taps taps,
                 bool with_goals);

    // Throws Error if a logit is not finite, UsageError for a token that the target does not have.
    TargetOutputs read(const TrainingTexts& texts, const DraftVocabulary& vocabulary);

  private:
    void run(std::span<const int> tokens);

    Backend& backend_;
    Target& target_;
    TrainingDevice& device_;
    Taps taps_;
    bool with_goals_;
    KvPool kv_;
    Buffer memory_;
    Tensor rows_, features_, logits_;
    std::vector<float> tapped_, scores_;  // [positions, taps * hidden], [positions, vocab]
};

}  // namespace aerie::train
