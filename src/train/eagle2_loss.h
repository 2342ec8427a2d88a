// The loss of EAGLE-1 and EAGLE-2 heads (EAGLE, section 3.2), and its gradient.
//
// Row i reads the embedding of token i + 1 beside the feature at position i, to which noise was
// added, and predicts the feature at position i + 1: SmoothL1, plus 0.1 times the cross-entropy of
// the target's LM head on the prediction against the target's distribution. A row counts if token i
// belongs to an answer; the loss is the mean over the rows that count.
#pragma once

#include "train/decoder_layer.h"

namespace aerie::train {

class Eagle2Loss {
  public:
    static constexpr double kClassWeight = 0.1;

    // embedding, lm_head: the target's [vocab, hidden].
    Eagle2Loss(TrainingDevice& device, TrainedHead& head, Matrix embedding, Matrix lm_head,
               int max_rows);

    // target.features holds the noise already, target.goals does not.
    double run(const TrainingTexts& texts, const TargetOutputs& target,
               Gradient gradient = Gradient::yes);

    double regression() const { return regression_; }  // mean over the rows that count
    const DepthLoss& classification() const { return classification_; }

  private:
    TrainingDevice& device_;
    TrainedHead& head_;
    Matrix embedding_, lm_head_;
    DecoderLayer layer_;
    LayerPass pass_;
    Matrix pairs_, dout_, dclass_, dx_, dhidden_;
    Matrix judged_, logits_;  // some rows that count, and their logits
    double regression_ = 0;
    DepthLoss classification_;
};

}  // namespace aerie::train
