// An EAGLE-3 head in doubles, as docs/drafting.md sections 1 and 2 describe it. It shares no code
// with the drafter.
#pragma once

#include "reference/matrix.h"

namespace aerie::reference {

// Scaling of RoPE's base frequencies: none, linear, or that of Llama 3.1.
struct RopeScaling {
    enum class Kind { none, linear, llama3 } kind = Kind::none;
    // `low`, `high` and `trained` belong to llama3.
    double factor = 1, low = 1, high = 4, trained = 0;
};
// Returns head_dim / 2 frequencies, one for each rotated pair of a head.
std::vector<double> rope_frequencies(double theta, int head_dim, const RopeScaling& scaling);

// Weights of a head. Matrices are [out, in]; biases and norm weights are [1, n]. An empty matrix
// means that the head has none.
struct Eagle3 {
    Exact embedding, fc, q, k, v, o, gate, up, down, lm_head;
    Exact q_bias, k_bias, v_bias, o_bias, gate_bias, up_bias, down_bias;
    Exact input_norm, hidden_norm, ffn_norm, output_norm;
    std::vector<Exact> tap_norms;     // fc_norm: one norm for each tap
    Exact features_norm;              // norm of all taps side by side
    Exact q_norm, k_norm;             // norms of each attention head
    std::vector<double> frequencies;  // head_dim / 2 values
    int heads = 0, kv_heads = 0;
    double epsilon = 1e-6;
    bool adds_to_normed = false;  // norm_before_residual of the configuration
    bool feeds_normed = false;    // norm_output: the LM head reads the states as they are
};

// Runs rows of one text and of its drafts, in several passes, and keeps their keys and values.
class Eagle3Run {
  public:
    explicit Eagle3Run(const Eagle3& head) : head_(head) {}

    struct Row {
        int token = 0, position = 0;
        // Numbers, from 0, of the earlier rows that this row attends to. It always attends to
        // itself.
        std::vector<int> seen;
    };
    // Both return states: before the output norm, or after it with feeds_normed. The inputs of
    // read() are the target's taps, side by side; those of forward() are the states of the rows'
    // parents.
    Exact read(const Exact& taps, const std::vector<Row>& rows);
    Exact forward(const Exact& parents, const std::vector<Row>& rows);
    Exact logits(const Exact& states) const;

  private:
    using Vector = std::vector<double>;

    Vector run(const Vector& state, const Row& row);
    Vector attend(const Vector& input, const Row& row);

    const Eagle3& head_;
    std::vector<Vector> keys_, values_;
};

}  // namespace aerie::reference
