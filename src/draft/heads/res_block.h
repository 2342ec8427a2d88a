// The parts of Medusa and Hydra heads: blocks x + silu(linear x), and an LM head.
#pragma once

#include <memory>
#include <vector>

#include "draft/heads/head.h"
#include "draft/heads/parallel_heads.h"
#include "model/decoder_layer.h"
#include "model/weights.h"

namespace aerie {

// Scratch memory for the rows of a pass through such heads.
struct ResScratch {
    void add_to(TensorPlan& plan, int rows, int hidden, int widest);
    // Must be called once: the second half of gate_up holds ones and never changes.
    void write_ones(Backend& be) const;

    Tensor gate_up;  // [rows, 2 hidden]: input of silu, then ones
    Tensor active;   // [rows, hidden]
    Tensor joined;   // [rows, hidden]
    Tensor states;   // [rows, hidden]: output of the last block
    Tensor input;    // [rows, widest]: input of matmuls
};

// A residual block with `inputs` states of the target's width side by side as input, and one as
// output.
class ResBlock {
  public:
    // prefix: such as "hydra_mlp.0.1."; with several inputs a second matrix joins them.
    ResBlock(const WeightLoader& loader, const std::string& prefix, int hidden, int inputs);
    // out [M, hidden]; x [M, inputs * hidden] may be the same memory.
    void run(Backend& be, const ResScratch& scratch, Tensor out, Tensor x) const;

  private:
    std::unique_ptr<Weight> linear_, joining_;  // joining_ is absent with one input
    Vector bias_, joining_bias_;                // joining_bias_ is absent with one input
};

// The heads of a checkpoint; head i reads inputs_of(heads, i) inputs.
struct ParallelWeights final : DraftWeights {
    // Loads the head's own tensors alone, none of the target's.
    ParallelWeights(const WeightLoader& loader, const HeadConfig& config);
    explicit ParallelWeights(const DraftSource& source);

    // Writes F32 [M, vocab], the logits of head i over x [M, inputs * hidden].
    void logits(Backend& be, const Target& target, const ResScratch& scratch, int i, Tensor out,
                Tensor x) const;

    struct Head {
        std::vector<ResBlock> blocks;
        std::unique_ptr<Weight> lm_head;  // absent: shared_lm_head serves, or else the target's
        Vector lm_head_bias;              // may be absent
    };
    std::vector<Head> heads;
    std::unique_ptr<Weight> shared_lm_head;  // a copy of the target's, in the type of the heads
    // Only for Hydra++.
    std::unique_ptr<DecoderLayer> prefix;
    Vector prefix_norm;
};

// Number of inputs of head i, and of the last head.
int inputs_of(const ParallelHeads& heads, int i);
int most_inputs(const ParallelHeads& heads);

// The row of a kind of parallel heads, without what tells Medusa and Hydra apart.
DraftHead parallel_head();

// Limits, checks and bytes for the methods that use such heads.
int parallel_levels(const DraftPlan& plan);
void check_parallel(const DraftPlan& plan);
Limits parallel_limits(const DraftPlan& plan, const TreeDrafterLimits& reach);
DraftBytes parallel_weight_bytes(const DraftPlan& plan);

// The given static tree, or the published one if asked for; otherwise the tree grows by confidence.
Growth parallel_growth(const DraftOptions& options);

}  // namespace aerie
