// What Medusa and Hydra heads are made of: blocks x + silu(linear x), and an LM head.
#pragma once

#include <memory>
#include <vector>

#include "draft/head.h"
#include "model/decoder_layer.h"
#include "model/weights.h"

namespace aerie {

// Rooms for rows of a pass through such heads.
struct ResScratch {
    void add_to(TensorPlan& plan, int rows, int hidden, int widest);
    // To be called once: one half of gate_up never changes.
    void write_ones(Backend& be) const;

    Tensor gate_up;  // [rows, 2 hidden]: what silu reads, and ones, which it multiplies with
    Tensor active;   // [rows, hidden]
    Tensor joined;   // [rows, hidden]
    Tensor states;   // [rows, hidden]: of the last block
    Tensor input;    // read by matmuls: [rows, widest]
};

// `inputs` of the target's width beside each other go in, one comes out.
class ResBlock {
  public:
    // prefix: "hydra_mlp.0.1."; with several inputs a second matrix joins them.
    ResBlock(const WeightLoader& loader, const std::string& prefix, int hidden, int inputs);
    // out [M, hidden]; x [M, inputs * hidden] may be in its place.
    void run(Backend& be, const ResScratch& scratch, Tensor out, Tensor x) const;

  private:
    std::unique_ptr<Weight> linear_, joining_;  // the second may be absent
    Vector bias_, joining_bias_;                // may be absent
};

// Heads of a checkpoint; head i reads `inputs_of(i)` inputs.
struct ParallelWeights final : DraftWeights {
    explicit ParallelWeights(const DraftSource& source);

    // F32 [M, vocab] of head i over x [M, inputs * hidden].
    void logits(Backend& be, const Target& target, const ResScratch& scratch, int i, Tensor out,
                Tensor x) const;

    struct Head {
        std::vector<ResBlock> blocks;
        std::unique_ptr<Weight> lm_head;  // absent: shared, else the target's
        Vector lm_head_bias;              // may be absent
    };
    std::vector<Head> heads;
    std::unique_ptr<Weight> shared_lm_head;  // the target's in the heads' type
    // Of Hydra++.
    std::unique_ptr<DecoderLayer> prefix;
    Vector prefix_norm;
};

// Inputs of head i, and of the last one.
int inputs_of(const ParallelHeads& heads, int i);
int most_inputs(const ParallelHeads& heads);

// What a method of such heads asks and checks.
int parallel_levels(const DraftPlan& plan);
void check_parallel(const DraftPlan& plan);
Limits parallel_limits(const DraftPlan& plan, const GrownReach& reach);
DraftBytes parallel_weight_bytes(const DraftPlan& plan);

// The published tree, or that of a file, as far as the heads reach; else it grows by confidence.
Growth parallel_growth(const DraftOptions& options);

}  // namespace aerie
