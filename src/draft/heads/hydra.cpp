// Hydra and Hydra++ (Ankner et al. 2024; docs/drafting.md section 9). Head i reads the target's
// newest feature and the embeddings of the i + 1 tokens that follow it. Hydra++ first runs a
// decoder layer of its own over the features.
#include "draft/heads/res_block.h"

namespace aerie {

namespace {

struct Scratch {
    void add_to(TensorPlan& plan, const DraftPlan& drafts, const TreeDrafterLimits& reach) {
        const HeadConfig& config = *drafts.head;
        block.add_to(plan, reach.grow.rows(), config.hidden,
                     most_inputs(parallel_heads(config)) * config.hidden);
        if (!parallel_heads(config).has_prefix) return;
        const int rows = reach.rows(drafts.pass_rows);
        layer.add_to(plan, config, rows);
        plan.add(x, DType::F32, rows, config.hidden);
    }

    ResScratch block;
    Activations layer;  // only for Hydra++
    Tensor x;           // [rows, hidden]; only for Hydra++
};

KvShape kv_of(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    if (parallel_heads(*plan.head).has_prefix) return head_kv(plan, reach);
    return {0, 0, plan.kv, reach.slots(plan.context), plan.sequences};
}

size_t rope_bytes(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    if (!parallel_heads(*plan.head).has_prefix) return 0;
    return dense_bytes(DType::F32, reach.positions(plan.context), plan.head->attention.head_dim);
}

// A node's state is the feature, then the embedding of the token after it, then those of the tokens
// on the path. The columns behind these are undefined.
class Levels final : public LevelModel {
  public:
    Levels(const DraftSource& source, const TreeDrafterLimits& reach)
        : be_(source.backend),
          target_(source.target),
          config_(*source.plan.head),
          weights_(std::static_pointer_cast<const ParallelWeights>(source.weights)),
          kv_(be_, kv_of(source.plan, reach)) {
        if (parallel_heads(config_).has_prefix)
            rope_ = make_rope_table(be_, reach.positions(source.plan.context), config_);
        TensorPlan plan;
        scratch_.add_to(plan, source.plan, reach);
        memory_ = plan.allocate(be_);
        scratch_.block.write_ones(be_);
    }

    int token_lead() const override { return 1; }
    int state_columns() const override {
        return most_inputs(parallel_heads(config_)) * config_.hidden;
    }
    int feature_columns() const override { return config_.hidden; }
    int vocab() const override { return config_.vocab; }
    KvPool& kv() override { return kv_; }

    void read(Tensor state, Tensor features, Rows rows) override {
        const Tensor feature = inputs(state, 0, 1);
        if (weights_->prefix) {
            const Tensor x = scratch_.x.row_range(0, rows.count());
            be_.run(Copy{x, features}, "feature");
            weights_->prefix->run(be_, config_, scratch_.layer, x, {rows, kv_.layer(0), rope_});
            be_.run(RmsNorm{feature, x, weights_->prefix_norm, config_.rms_epsilon}, "norm");
        } else {
            be_.run(Copy{feature, features}, "feature");
        }
        be_.run(Embed{inputs(state, 1, 1), target_.embedding(), rows}, "embedding");
    }
    void forward(Tensor state, const ParentStates& parents, Rows rows, int level) override {
        const Tensor path = inputs(parents.gathered(be_), 0, level + 1);
        be_.run(Copy{inputs(state, 0, level + 1), path}, "path");
        be_.run(Embed{inputs(state, level + 1, 1), target_.embedding(), rows}, "embedding");
    }
    bool differs_by_level() const override { return true; }
    void logits(Tensor out, Tensor state, int level, int) override {
        weights_->logits(be_, target_, scratch_.block, level, out, inputs(state, 0, level + 2));
    }

  private:
    Tensor inputs(Tensor state, int first, int count) const {
        return state.col_range(first * config_.hidden, count * config_.hidden);
    }

    Backend& be_;
    const Target& target_;
    HeadConfig config_;
    std::shared_ptr<const ParallelWeights> weights_;
    Vector rope_;
    Buffer memory_;
    Scratch scratch_;
    KvPool kv_;
};

DraftBytes bytes_of(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    const HeadConfig& config = *plan.head;
    DraftBytes bytes = parallel_weight_bytes(plan);
    Scratch scratch;
    TensorPlan of_scratch;
    scratch.add_to(of_scratch, plan, reach);
    bytes.scratch =
        of_scratch.size_bytes() + kv_of(plan, reach).size_bytes() + rope_bytes(plan, reach) +
        tree_drafter_bytes(plan, reach, most_inputs(parallel_heads(config)) * config.hidden,
                           config.hidden, config.vocab);
    return bytes;
}

}  // namespace

DraftHead hydra_head() {
    DraftHead head = parallel_head();
    head.name = "a Hydra head";
    head.ending = "-hydra";
    head.method = {"hydra", "the same where heads see the tokens between", parallel_growth, true,
                   true};
    head.has_tensors = is_hydra;
    head.config = hydra_config;
    head.bytes = bytes_of;
    head.levels = [](const DraftSource& source,
                     const TreeDrafterLimits& reach) -> std::unique_ptr<LevelModel> {
        return std::make_unique<Levels>(source, reach);
    };
    return head;
}

}  // namespace aerie
