// A smaller language model that drafts for a larger one with the same tokens. It reads the text
// itself, so it needs only token ids from the target. A node's state is its hidden state after the
// final norm, which the LM head reads; its children need nothing else but the KV cache.
#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "draft/heads/head.h"
#include "model/decoder_layer.h"
#include "model/tensors.h"

namespace aerie {

namespace {

// Limits for any tree, since drafters with different trees share the model.
TargetLimits loaded_limits(const DraftPlan& plan) {
    const int trees = std::clamp(plan.together, 1, kMostGrown);
    return {std::max(plan.pass_rows, trees * kMaxFrontier), plan.context + kMaxDepth + 2};
}

KvShape kv_of(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    const ModelConfig& model = *plan.head;
    return {model.layers,   model.kv_columns(),      plan.kv, reach.slots(plan.context),
            plan.sequences, reach.shared_slots(plan)};
}

// Ids that both models have: equal vocabularies may be padded to different sizes.
int common_ids(const DraftPlan& plan) {
    return std::min(plan.head->vocab, plan.target.vocab);
}

struct Loaded final : DraftWeights {
    explicit Loaded(const DraftSource& source)
        : limits(loaded_limits(source.plan)),
          model(make_target(source.backend, *source.plan.head, source.plan.source->tensors,
                            source.plan.weights, limits)) {}

    const TargetLimits limits;
    const std::unique_ptr<Target> model;  // its scratch serves one pass at a time
};

struct Scratch {
    void add_to(TensorPlan& plan, const DraftPlan& drafts, const TreeDrafterLimits& reach) {
        const ModelConfig& model = *drafts.head;
        const int ids = common_ids(drafts), rows = reach.grow.rows();
        plan.add(head_input, DType::F32, rows, model.hidden);
        if (ids < model.vocab) plan.add(logits, DType::F32, rows, model.vocab);
        if (ids < drafts.target.vocab) plan.add(target_ids, DType::I32, 1, ids);
    }

    Tensor head_input;  // input of the LM head, as its matmul reads it
    Tensor logits;      // [rows, draft vocab]; absent if all draft ids are ids of the target
    Tensor target_ids;  // [1, common ids]: 0, 1, 2, ...; absent if the target has no others
};

class Levels final : public LevelModel {
  public:
    Levels(const DraftSource& source, const TreeDrafterLimits& reach)
        : be_(source.backend),
          loaded_(std::static_pointer_cast<const Loaded>(source.weights)),
          model_(*loaded_->model),
          vocab_(common_ids(source.plan)),
          kv_(be_, kv_of(source.plan, reach)) {
        const TargetLimits wanted = loaded_limits(source.plan);
        if (wanted.rows > loaded_->limits.rows || wanted.positions > loaded_->limits.positions)
            throw UsageError("the draft model was loaded for smaller batches than this one");
        TensorPlan plan;
        scratch_.add_to(plan, source.plan, reach);
        memory_ = plan.allocate(be_);
        if (!scratch_.target_ids) return;
        std::vector<int32_t> ids(static_cast<size_t>(vocab_));
        std::iota(ids.begin(), ids.end(), 0);
        be_.write(scratch_.target_ids, ids.data());
    }

    int token_lead() const override { return 0; }
    int state_columns() const override { return model_.config().hidden; }
    int feature_columns() const override { return 0; }
    int vocab() const override { return vocab_; }
    Tensor target_ids() const override { return scratch_.target_ids; }
    // Ids in the padding of the target's larger vocabulary occur in no text; the model must only be
    // given a valid one.
    int token_of(int token) const override { return token < model_.config().vocab ? token : 0; }
    KvPool& kv() override { return kv_; }

    void read(Tensor state, Tensor, Rows rows) override { run(state, rows); }
    void forward(Tensor state, const ParentStates&, Rows rows, int) override { run(state, rows); }
    void logits(Tensor out, Tensor state, int, int) override {
        const Weight& head = model_.lm_head();
        const Tensor input = activation(be_, state, head, scratch_.head_input, "LM head input");
        const Tensor all = scratch_.logits ? scratch_.logits.row_range(0, state.rows) : out;
        be_.run(Matmul{all, input, head}, "logits");
        if (scratch_.logits) be_.run(Copy{out, all.col_range(0, vocab_)}, "common ids");
    }

  private:
    void run(Tensor state, Rows rows) {
        TargetPass pass;
        pass.rows = rows;
        pass.kv = &kv_;
        pass.taps = taps_;
        pass.features = state;
        model_.forward(pass);
    }

    Backend& be_;
    std::shared_ptr<const Loaded> loaded_;
    Target& model_;
    int vocab_;
    Taps taps_ = {model_.config().layers};  // the state that the LM head reads
    KvPool kv_;
    Buffer memory_;
    Scratch scratch_;
};

Limits limits_of(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    const TargetLimits loaded = loaded_limits(plan);
    return pass_limits(*plan.head, loaded.rows,
                       std::max(loaded.positions, reach.slots(plan.context)));
}

DraftBytes bytes_of(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    const ModelConfig& model = *plan.head;
    const Checkpoint& tensors = plan.source->tensors;
    const std::vector<TensorShape> shapes = target_tensors(model);
    DraftBytes bytes;
    bytes.types = matrix_bytes(tensors, shapes, plan.weights);
    bytes.weights = sum(bytes.types) + vector_bytes(tensors, shapes);
    Scratch scratch;
    TensorPlan of_scratch;
    scratch.add_to(of_scratch, plan, reach);
    bytes.scratch = of_scratch.size_bytes() + kv_of(plan, reach).size_bytes() +
                    target_scratch_bytes(model, loaded_limits(plan)) +
                    tree_drafter_bytes(plan, reach, model.hidden, 0, common_ids(plan));
    return bytes;
}

}  // namespace

DraftHead draft_model() {
    return {
        .name = "a language model",
        .ending = "-draft",
        .needs = DraftNeeds::language_model,
        .method = {"model", "EAGLE-2's tree with a smaller model of the same tokens",
                   dynamic_growth},
        .has_tensors =
            [](const Checkpoint& tensors) {
                return tensors.find("model.embed_tokens.weight") ||
                       tensors.find("model.norm.weight");
            },
        .config = [](const ModelSource& source) { return HeadConfig{target_config(source)}; },
        .taps = [](const DraftPlan&) { return Taps{}; },
        .check = [](const DraftPlan&) {},  // check_same_tokens() in the engine compares the tokens
        .limits = limits_of,
        .bytes = bytes_of,
        .load = [](const DraftSource& source) -> std::shared_ptr<const DraftWeights> {
            return std::make_shared<Loaded>(source);
        },
        .levels = [](const DraftSource& source, const TreeDrafterLimits& reach)
            -> std::unique_ptr<LevelModel> { return std::make_unique<Levels>(source, reach); }};
}

}  // namespace aerie
