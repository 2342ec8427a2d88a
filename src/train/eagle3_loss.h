// The loss of EAGLE-3's training-time test (EAGLE-3, section 3.2), and its gradient.
//
// Depth s runs the layer on the row's own output of depth s - 1 and the text's token i + s + 1, at
// position i + s. Row i of depth s exists while i + s <= L - 2, and counts if token i + s belongs
// to an answer and the target's best token at position i + s + 1 is in the draft vocabulary.
#pragma once

#include "train/decoder_layer.h"

namespace aerie::train {

struct TrainingTimeTest {
    int depths = 7;
    double weight = 0.8;  // depth s weighs weight^s
};

class Eagle3Loss {
  public:
    // embedding: the target's [vocab, hidden]. Texts have at most max_rows rows.
    Eagle3Loss(TrainingDevice& device, TrainedHead& head, Matrix embedding,
               const TrainingTimeTest& test, int max_rows);

    // Returns the loss: the sum over depths of weight^s times the depth's sum divided by the number
    // of all tokens.
    double run(const TrainingTexts& texts, const TargetOutputs& target,
               Gradient gradient = Gradient::yes);
    std::span<const DepthLoss> depths() const { return depths_; }

  private:
    struct Depth {
        Matrix embedded, embedded_inverse;  // [R, H], [R, 1]: what input_norm reads
        Matrix hidden_inverse;              // [R, 1]
        Matrix inverse;                     // [R, 1], of the final norm
        Matrix dout;                        // [R, H]: the gradient of the layer's output
    };
    void forward(const TrainingTexts& texts, const TargetOutputs& target, int depth, int rows);
    void backward(const TrainingTexts& texts, const TargetOutputs& target, int depth, int rows);
    // Depth s's loss, and with a gradient that at the layer's output in dout.
    void judge(const TrainingTexts& texts, const TargetOutputs& target, int depth, int rows,
               Gradient gradient);

    TrainingDevice& device_;
    TrainedHead& head_;
    Matrix embedding_;
    TrainingTimeTest test_;
    DecoderLayer layer_;
    std::vector<LayerPass> passes_;
    std::vector<Depth> scratch_;
    std::vector<DepthLoss> depths_;
    Matrix normed_, dnormed_, dx_, dhidden_;
    Matrix judged_, logits_;  // some rows that count, and their logits
};

}  // namespace aerie::train
