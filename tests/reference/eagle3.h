// An EAGLE-3 head in doubles, as eagle.md describes it (sections 1 and 2) and sharing nothing with
// the one that drafts.
#pragma once

#include "reference/matrix.h"

namespace aerie::reference {

// How the base frequencies of RoPE are changed: not, linearly, or as Llama 3.1 does.
struct RopeScaling {
    enum class Kind { none, linear, llama3 } kind = Kind::none;
    double factor = 1, low = 1, high = 4, trained = 0;  // the last three: llama3's
};
// Of the pairs of a head of this size.
std::vector<double> rope_frequencies(double theta, int head_dim, const RopeScaling& scaling);

// Matrices are [out, in], what stands beside or behind them [1, n]. Empty: there is none.
struct Eagle3 {
    Exact embedding, fc, q, k, v, o, gate, up, down, lm_head;
    Exact q_bias, k_bias, v_bias, o_bias, gate_bias, up_bias, down_bias;
    Exact input_norm, hidden_norm, ffn_norm, output_norm;
    std::vector<Exact> tap_norms;     // fc_norm
    Exact features_norm;              // of all taps together
    Exact q_norm, k_norm;             // of each attention head
    std::vector<double> frequencies;  // half as many as a head has elements
    int heads = 0, kv_heads = 0;
    double epsilon = 1e-6;
    bool adds_to_normed = false;  // norm_before_residual
    bool feeds_normed = false;    // norm_output of EAGLE-3.1: states are what the LM head reads
};

// Rows of one text and its drafts, in passes; keeps their keys and values.
class Eagle3Run {
  public:
    explicit Eagle3Run(const Eagle3& head) : head_(head) {}

    struct Row {
        int token = 0, position = 0;
        std::vector<int> seen;  // rows run before, by number from 0 on; itself it sees anyway
    };
    // States, before the output norm unless normed ones are fed: over the target's hidden states
    // side by side, or over those of the rows' parents.
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
