// Runs the target over texts, in its own weight types and on its own device, and turns its outputs
// into what a head is trained with.
#pragma once

#include "core/fair_mutex.h"
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
    // too. `mutex` is held during each pass; null: nobody else uses the backend. Throws Error.
    TargetReader(Backend& backend, Target& target, TrainingDevice& device, int positions, Taps taps,
                 bool with_goals, FairMutex* mutex = nullptr);
    ~TargetReader();
    TargetReader(const TargetReader&) = delete;
    TargetReader& operator=(const TargetReader&) = delete;

    const Taps& taps() const { return taps_; }
    // The outputs are in memory that the next call uses again.
    // Throws Error if a logit is not finite, UsageError for a token that the target does not have.
    TargetOutputs read(const TrainingTexts& texts, const DraftVocabulary& vocabulary);

  private:
    std::unique_lock<FairMutex> lock_mutex() const;
    void run(std::span<const int> tokens, const std::vector<bool>& mask);

    Backend& backend_;
    Target& target_;
    TrainingDevice& device_;
    Taps taps_;
    bool with_goals_;
    FairMutex* mutex_;
    // Device memory; `mutex` is held while it is allocated.
    struct Memory {
        Memory(Backend& backend, const ModelConfig& config, int positions, int taps);
        KvPool kv;
        Buffer buffer;
        Tensor rows, features, logits;
    };
    std::unique_ptr<Memory> memory_;
    // The outputs of the last call, and room for more rows.
    struct Kept {
        Matrix features, goals, targets;
    } kept_;
    std::vector<float> target_rows_;      // [rows, draft vocabulary]
    std::vector<float> tapped_, scores_;  // [positions, taps * hidden], [positions, vocab]
};

}  // namespace aerie::train
