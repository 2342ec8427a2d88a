// Medusa (Cai et al. 2024; docs/drafting.md section 9). Head i predicts the token i + 2 positions
// after the target's newest feature, independently of the tokens between. So all nodes of a tree's
// level have the same children.
#include "draft/heads/res_block.h"

namespace aerie {

namespace {

struct Scratch {
    void add_to(TensorPlan& plan, const DraftPlan& drafts, const TreeDrafterLimits& reach) {
        const HeadConfig& config = *drafts.head;
        const int rows = reach.grow.together > 1 ? reach.grow.rows() : 1;
        block.add_to(plan, rows, config.hidden, config.hidden);
        plan.add(logits, DType::F32, 1, config.vocab);
        plan.add(first, DType::I32, 1, reach.grow.width);
    }

    ResScratch block;
    Tensor logits;  // [1, vocab]: logits that all nodes of a tree's level share
    Tensor first;   // [1, width]: zeros, the index that gives each row the logits of row 0
};

KvShape no_kv(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    return {0, 0, plan.kv, reach.slots(plan.context), plan.sequences};
}

// A node's state is the feature at the root of the tree.
class Levels final : public LevelModel {
  public:
    Levels(const DraftSource& source, const TreeDrafterLimits& reach)
        : be_(source.backend),
          target_(source.target),
          config_(*source.plan.head),
          weights_(std::static_pointer_cast<const ParallelWeights>(source.weights)),
          kv_(be_, no_kv(source.plan, reach)) {
        TensorPlan plan;
        scratch_.add_to(plan, source.plan, reach);
        memory_ = plan.allocate(be_);
        scratch_.block.write_ones(be_);
        const std::vector<int32_t> zeros(size_t(reach.grow.width));
        be_.write(scratch_.first, zeros.data());
    }

    int token_lead() const override { return 1; }
    int state_columns() const override { return config_.hidden; }
    int feature_columns() const override { return config_.hidden; }
    int vocab() const override { return config_.vocab; }
    KvPool& kv() override { return kv_; }

    void read(Tensor state, Tensor features, Rows) override {
        be_.run(Copy{state, features}, "feature");
    }
    void forward(Tensor state, const ParentStates& parents, Rows, int) override {
        be_.run(Copy{state, parents.gathered(be_)}, "feature");
    }
    bool differs_by_level() const override { return true; }
    void logits(Tensor out, Tensor state, int level, int trees) override {
        if (trees > 1) return weights_->logits(be_, target_, scratch_.block, level, out, state);
        const Tensor one = out.rows == 1 ? out : scratch_.logits;
        weights_->logits(be_, target_, scratch_.block, level, one, state.row_range(0, 1));
        if (out.rows > 1)
            be_.run(GatherRows{out, one, scratch_.first.col_range(0, out.rows)}, "logits of all");
    }

  private:
    Backend& be_;
    const Target& target_;
    HeadConfig config_;
    std::shared_ptr<const ParallelWeights> weights_;
    Buffer memory_;
    Scratch scratch_;
    KvPool kv_;
};

DraftBytes bytes_of(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    DraftBytes bytes = parallel_weight_bytes(plan);
    Scratch scratch;
    TensorPlan of_scratch;
    scratch.add_to(of_scratch, plan, reach);
    const HeadConfig& config = *plan.head;
    bytes.scratch = of_scratch.size_bytes() + no_kv(plan, reach).size_bytes() +
                    tree_drafter_bytes(plan, reach, config.hidden, config.hidden, config.vocab);
    return bytes;
}

}  // namespace

DraftHead medusa_head() {
    DraftHead head = parallel_head();
    head.name = "a Medusa head";
    head.ending = "-medusa";
    head.method = {"medusa", "a tree by a head for each token ahead", parallel_growth, true, true};
    head.has_tensors = is_medusa;
    head.config = medusa_config;
    head.bytes = bytes_of;
    head.levels = [](const DraftSource& source,
                     const TreeDrafterLimits& reach) -> std::unique_ptr<LevelModel> {
        return std::make_unique<Levels>(source, reach);
    };
    return head;
}

}  // namespace aerie
