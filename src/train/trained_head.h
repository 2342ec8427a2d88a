// A draft head as it is trained: its parameters on a device, with gradient and moments of each.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "backend/training.h"
#include "model/config.h"

namespace aerie::train {

struct HeadShape {
    int hidden = 0, intermediate = 0;
    int heads = 0, kv_heads = 0, head_dim = 0;
    int taps = 1;  // tapped layers of the target that the head reads side by side (EAGLE-3: 3)
    int vocab = 0, draft_vocab = 0;  // draft_vocab 0: the head uses the target's LM head (EAGLE-2)
    double epsilon = 1e-5, rope_base = 10000;

    int query_width() const { return heads * head_dim; }
    int kv_width() const { return kv_heads * head_dim; }
};

// The shape of a head whose layer is like this one.
HeadShape shape_of(const ModelConfig& layer, int taps, int draft_vocab);

// A tensor of the head's file; several may be parts of one matrix, which one product multiplies.
struct Parameter {
    std::string name;
    Matrix value, gradient, mean, square;
};

// `value` holds the parameters of one kind of head; the names are those of published files.
class TrainedHead {
  public:
    TrainedHead(TrainingDevice& device, const HeadShape& shape);

    const HeadShape& shape() const { return shape_; }
    std::span<const Parameter> parameters() const { return parameters_; }
    const Parameter& parameter(const std::string& name) const;

    void clear_gradients();
    void forget();  // moments and steps; the parameters stay
    // The L2 norm of all gradients together.
    double gradient_norm();
    // Clips the gradients to this norm and updates every parameter; returns the norm before.
    double update(const AdamW& rule, double clip_norm);
    int steps() const { return steps_; }
    void go_on_after(int steps) { steps_ = steps; }  // the parameters are those after so many

    // Matrices and their gradients, for the losses. Eagle-2 heads lack some of them.
    struct Weight {
        Matrix value, gradient;
    };
    Weight fc, fc_bias, qkv, o, gate_up, down;
    Weight input_norm, hidden_norm, post_norm, norm, lm_head;

  private:
    struct Part {
        std::string name;
        int rows;
    };
    Weight add(int cols, const std::vector<Part>& parts);

    TrainingDevice& device_;
    HeadShape shape_;
    std::vector<Parameter> parameters_;
    int steps_ = 0;
};

}  // namespace aerie::train
