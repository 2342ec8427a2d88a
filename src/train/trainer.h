// Trains a head on texts: steps of the optimiser, with a rate that warms up and decays, and the
// agreement on texts that were held out.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "train/eagle2_loss.h"
#include "train/eagle3_loss.h"
#include "train/target_reader.h"

namespace aerie::train {

struct TrainingPlan {
    int batch_rows = 1024;  // a step's texts have about so many tokens
    double rate = 1e-4, warm_up = 0.03, final_rate = 0.1;  // shares of the training and of the rate
    double clip_norm = 0.5;
    double noise = 0.1;  // EAGLE-2: features are changed by up to so much
    TrainingTimeTest test;
    uint64_t seed = 1;
};

// How a head does on texts that it did not learn from.
struct Evaluation {
    double loss = 0;
    std::vector<double> agreement;  // by depth: hits / rows; EAGLE-2 has one depth
    // Tokens of a cycle that drafts a chain, if agreement at each depth is as it was measured: 1 +
    // a_0 + a_0 a_1 + ...
    double expected_tau() const;
};

class Trainer {
  public:
    // embedding, lm_head: the target's; lm_head is needed by EAGLE-2 heads only.
    Trainer(TrainingDevice& device, TrainedHead& head, TargetReader& reader,
            const DraftVocabulary& vocabulary, Matrix embedding, Matrix lm_head,
            const TrainingPlan& plan, int max_text);

    // The next step, on texts that its number and the plan's seed choose. `way` is the share of the
    // training that lies behind it, from 0 to 1. Returns the loss. Throws Error if it is not
    // finite.
    double step(const TrainingTexts& texts, double way);
    Evaluation evaluate(const TrainingTexts& texts);

    int steps() const { return head_.steps(); }
    int64_t tokens() const { return tokens_; }  // learnt from so far
    void go_on_after(int64_t tokens) { tokens_ = tokens; }
    double rate(double way) const;  // rises during the warm-up, then falls as a cosine

  private:
    // The texts of a step, in an order that is new in every pass over them.
    TrainingTexts chosen(const TrainingTexts& texts, int step) const;
    double run(const TrainingTexts& texts, Gradient gradient);

    TrainingDevice& device_;
    TrainedHead& head_;
    TargetReader& reader_;
    const DraftVocabulary& vocabulary_;
    TrainingPlan plan_;
    std::unique_ptr<Eagle3Loss> eagle3_;
    std::unique_ptr<Eagle2Loss> eagle2_;
    int64_t tokens_ = 0;
};

// Numbers between -amount and amount, all equally likely (EAGLE, section 3.2).
std::vector<float> uniform_noise(size_t count, double amount, uint64_t seed);

// Fills the parameters of a head that was never trained: small random numbers, norms of one, and an
// LM head that is the target's rows of the draft vocabulary.
void initialise(TrainingDevice& device, TrainedHead& head, const DraftVocabulary& vocabulary,
                std::span<const float> lm_head, uint64_t seed);

}  // namespace aerie::train
