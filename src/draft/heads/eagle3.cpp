// The EAGLE-3 head (docs/drafting.md sections 1 and 2): fc over hidden states of three target
// layers, then one decoder layer with attention over the token's embedding beside that result, then
// a norm and an LM head of its own, often for only part of the vocabulary. A node's state is the
// layer's output before the norm (after it in EAGLE-3.1), which its children's pass reads directly.
#include <optional>

#include "core/error.h"
#include "draft/heads/eagle3_files.h"
#include "model/decoder_layer.h"

namespace aerie {

namespace {

const std::string kLayer = "midlayer.";

struct Weights final : DraftWeights {
    // Loads the head's own tensors alone, none of the target's.
    Weights(const WeightLoader& loader, const HeadConfig& head);
    explicit Weights(const DraftSource& source);

    std::unique_ptr<Weight> embedding;  // [vocab, hidden]; absent: the target's serves
    std::unique_ptr<Weight> fc;         // [hidden, taps * target_hidden]
    std::unique_ptr<Weight> lm_head;    // [draft vocab, hidden]; absent: the target's serves
    std::optional<SelfAttention> attention;
    std::optional<DenseFfn> ffn;
    Vector input_norm, hidden_norm, ffn_norm, output_norm;
    std::vector<Vector> tap_norms;  // empty, or one norm for each tap
    Vector features_norm;           // one norm over all taps; may be absent
    TargetIds target_ids;
};

Weights::Weights(const WeightLoader& loader, const HeadConfig& head) {
    const Eagle3Shape& shape = eagle3_shape(head);
    if (loader.has("embed_tokens.weight"))
        embedding =
            loader.matrix({{"embed_tokens.weight", head.vocab}}, head.hidden, WeightUse::lookup);
    fc = loader.matrix({{"fc.weight", head.hidden}}, eagle3_features(head));
    attention.emplace(loader, head, kLayer + "self_attn.", 2 * head.hidden);
    ffn.emplace(loader, head, kLayer + "mlp.");
    input_norm = loader.norm(kLayer + "input_layernorm.weight", head.hidden);
    hidden_norm = loader.norm(kLayer + "hidden_norm.weight", head.hidden);
    ffn_norm = loader.norm(kLayer + "post_attention_layernorm.weight", head.hidden);
    output_norm = loader.norm("norm.weight", head.hidden);
    for (int i = 0; shape.norms_taps && i < shape.tap_count(); ++i)
        tap_norms.push_back(
            loader.norm("fc_norm." + std::to_string(i) + ".weight", shape.target_hidden));
    if (shape.norms_features)
        features_norm = loader.norm("input_norm.weight", eagle3_features(head));
    if (loader.has("lm_head.weight"))
        lm_head = loader.matrix({{"lm_head.weight", shape.vocab}}, head.hidden);
}

WeightLoader checked_loader(const DraftSource& source) {
    refuse_other_tensors(*source.plan.head, source.plan.source->tensors);
    // A wrong draft vocabulary is named as such, and not by the matrix that it does not fit.
    read_target_ids(*source.plan.head, source.plan.source->tensors);
    return {source.backend, source.plan.source->tensors, source.plan.weights};
}

Weights::Weights(const DraftSource& source) : Weights(checked_loader(source), *source.plan.head) {
    const Checkpoint& tensors = source.plan.source->tensors;
    target_ids = TargetIds(source.backend, read_target_ids(*source.plan.head, tensors));
    const DType type = lm_head_type(tensors, source.plan.weights);
    if (!lm_head && !source.target.lm_head().is_stored_as(type))
        lm_head = source.target.copy_lm_head(type);
}

struct Scratch {
    void add_to(TensorPlan& plan, const HeadConfig& head, int rows) {
        layer.add_to(plan, head, rows);
        plan.add(taps, DType::F32, rows, eagle3_features(head));
        plan.add(taps_input, DType::F32, rows, eagle3_features(head));
        plan.add(embedded, DType::F32, rows, head.hidden);
        plan.add(pair, DType::F32, rows, 2 * head.hidden);
        plan.add(pair_input, DType::F32, rows, 2 * head.hidden);
        plan.add(output, DType::F32, rows, head.hidden);
        plan.add(head_input, DType::F32, rows, head.hidden);
    }

    Activations layer;
    Tensor taps;                                // [rows, taps * target_hidden], normalised
    Tensor embedded;                            // [rows, hidden]
    Tensor pair;                                // [rows, 2 hidden], normalised: embedding, state
    Tensor output;                              // [rows, hidden], normalised
    Tensor taps_input, pair_input, head_input;  // inputs of matmuls
};

class Levels final : public LevelModel {
  public:
    Levels(const DraftSource& source, const TreeDrafterLimits& reach)
        : be_(source.backend),
          target_(source.target),
          config_(*source.plan.head),
          first_weights_(std::static_pointer_cast<const Weights>(source.weights)),
          weights_(first_weights_),
          rope_(make_rope_table(be_, reach.positions(source.plan.context), config_)),
          kv_(be_, head_kv(source.plan, reach)) {
        TensorPlan plan;
        scratch_.add_to(plan, config_, reach.rows(source.plan.pass_rows));
        memory_ = plan.allocate(be_);
    }

    int token_lead() const override { return 1; }
    int state_columns() const override { return config_.hidden; }
    int feature_columns() const override { return eagle3_features(config_); }
    int vocab() const override { return eagle3_shape(config_).vocab; }
    Tensor target_ids() const override { return weights_->target_ids; }
    KvPool& kv() override { return kv_; }
    const DraftWeights* weights() const override { return weights_.get(); }
    void use(const std::shared_ptr<const DraftWeights>& weights) override {
        weights_ = weights ? std::static_pointer_cast<const Weights>(weights) : first_weights_;
    }

    void read(Tensor state, Tensor features, Rows rows) override;
    void forward(Tensor state, const ParentStates& parents, Rows rows, int) override {
        be_.run(Copy{state, parents.gathered(be_)}, "state");
        run(state, rows);
    }
    void logits(Tensor out, Tensor state, int level, int trees) override;

  private:
    Tensor normed_taps(Tensor features);
    void run(Tensor x, Rows rows);
    RmsNorm norm(Tensor out, Tensor x, const Vector& weight) const {
        return {out, x, weight, config_.rms_epsilon};
    }

    Backend& be_;
    const Target& target_;
    HeadConfig config_;
    std::shared_ptr<const Weights> first_weights_, weights_;
    Vector rope_;
    Buffer memory_;
    Scratch scratch_;
    KvPool kv_;
};

Tensor Levels::normed_taps(Tensor features) {
    const bool one_norm = bool(weights_->features_norm.tensor);
    if (weights_->tap_norms.empty() && !one_norm) return features;
    const Tensor taps = scratch_.taps.row_range(0, features.rows);
    if (one_norm) be_.run(norm(taps, features, weights_->features_norm), "features norm");
    const int columns = eagle3_shape(config_).target_hidden;
    for (int i = 0; i < int(weights_->tap_norms.size()); ++i)
        be_.run(norm(taps.col_range(i * columns, columns), features.col_range(i * columns, columns),
                     weights_->tap_norms[size_t(i)]),
                "tap norm");
    return taps;
}

void Levels::read(Tensor state, Tensor features, Rows rows) {
    const Tensor input =
        activation(be_, normed_taps(features), *weights_->fc, scratch_.taps_input, "fc input");
    be_.run(Matmul{state, input, *weights_->fc}, "fc");
    run(state, rows);
}

// Runs the layer over the states x [M, hidden], in place.
void Levels::run(Tensor x, Rows rows) {
    const int m = rows.count(), hidden = config_.hidden;
    const Tensor embedded = scratch_.embedded.row_range(0, m), pair = scratch_.pair.row_range(0, m);
    const Weight& table = weights_->embedding ? *weights_->embedding : target_.embedding();
    const Tensor normed = pair.col_range(hidden, hidden);
    be_.run(Embed{embedded, table, rows}, "embedding");
    be_.run(norm(pair.col_range(0, hidden), embedded, weights_->input_norm), "embedding norm");
    be_.run(norm(normed, x, weights_->hidden_norm), "state norm");
    if (eagle3_shape(config_).norms_residual) be_.run(Copy{x, normed}, "residual");
    const Tensor input =
        activation(be_, pair, weights_->attention->consumer(), scratch_.pair_input, "pair");
    weights_->attention->run(be_, config_, scratch_.layer, {x, Accumulate::yes}, input,
                             {rows, kv_.layer(0), rope_});
    const Tensor ffn_input = weights_->ffn->input_in(be_, scratch_.layer.norm, m);
    be_.run(
        RmsNorm{ffn_input, x, weights_->ffn_norm, config_.rms_epsilon, weights_->ffn->consumers()},
        "ffn norm");
    weights_->ffn->run(be_, scratch_.layer, {x, Accumulate::yes}, ffn_input, 0);
    if (!eagle3_shape(config_).norms_state) return;
    const Tensor output = scratch_.output.row_range(0, m);
    be_.run(norm(output, x, weights_->output_norm), "output norm");
    be_.run(Copy{x, output}, "normed state");
}

void Levels::logits(Tensor out, Tensor state, int, int) {
    const Weight& head = weights_->lm_head ? *weights_->lm_head : target_.lm_head();
    Tensor output = state;
    if (!eagle3_shape(config_).norms_state) {
        output = scratch_.output.row_range(0, state.rows);
        be_.run(norm(output, state, weights_->output_norm), "output norm");
    }
    const Tensor input = activation(be_, output, head, scratch_.head_input, "LM head input");
    be_.run(Matmul{out, input, head}, "logits");
}

Limits limits_of(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    Limits limits = pass_limits(*plan.head, reach.rows(plan.pass_rows), reach.slots(plan.context));
    limits.widest = std::max(limits.widest, eagle3_features(*plan.head));
    return limits;
}

DraftBytes bytes_of(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    const HeadConfig& head = *plan.head;
    const Checkpoint& tensors = plan.source->tensors;
    const std::vector<TensorShape> shapes = eagle3_tensors(head);
    DraftBytes bytes;
    bytes.types = matrix_bytes(tensors, shapes, plan.weights);
    const DType type = lm_head_type(tensors, plan.weights);
    if (!has_lm_head(tensors) && type != plan.lm_head_type)
        bytes.types[type] += dense_bytes(type, plan.target.vocab, plan.target.hidden);
    bytes.weights = sum(bytes.types) + vector_bytes(tensors, shapes);
    Scratch scratch;
    TensorPlan of_scratch;
    scratch.add_to(of_scratch, head, reach.rows(plan.pass_rows));
    bytes.scratch =
        of_scratch.size_bytes() + head_kv(plan, reach).size_bytes() +
        dense_bytes(DType::F32, reach.positions(plan.context), head.attention.head_dim) +
        dense_bytes(DType::I32, 1, eagle3_shape(head).vocab) +
        tree_drafter_bytes(plan, reach, head.hidden, eagle3_features(head),
                           eagle3_shape(head).vocab);
    return bytes;
}

void complete(const ModelConfig& target, HeadConfig& head) {
    std::vector<int>& taps = eagle3_shape(head).taps;
    if (taps.empty()) taps = usual_taps(target.layers);
}

void set_taps(HeadConfig& head, const std::vector<int>& taps) {
    eagle3_shape(head).taps = taps;
    eagle3_shape(head).taps_rule = "--head-taps";
}

std::string info(const HeadConfig& head) {
    const Eagle3Shape& shape = eagle3_shape(head);
    std::string layers;
    for (const int tap : shape.taps) layers += (layers.empty() ? "" : ", ") + std::to_string(tap);
    return "reads the inputs of layers " + layers + " (" + shape.taps_rule +
           "), draft vocabulary of " + std::to_string(shape.vocab) + " tokens";
}

}  // namespace

std::vector<TensorShape> eagle3_tensors(const HeadConfig& head) {
    return tensors_loaded(head, [&](const WeightLoader& loader) { Weights(loader, head); });
}

DraftHead eagle3_head() {
    return {.name = "an EAGLE-3 head",
            .ending = "-eagle3",
            .method = {"eagle3", "the same with an EAGLE-3 head", dynamic_growth},
            .also = {"eagle1", "eagle2"},
            .recorded = "EAGLE-3",
            .has_config = is_eagle3,
            // SpecForge's exports for Hugging Face put "model." in front of all names; speculators
            // and vLLM call the layer by its number.
            .spellings = {{"model.", ""}, {"layers.0.", "midlayer."}},
            .config = eagle3_config,
            .complete = complete,
            .info = info,
            .random = {.shape = eagle3_head_shape,
                       .config_json = eagle3_json,
                       .tensors = random_eagle3_tensors,
                       .fill = fill_ids},
            .set_taps = set_taps,
            .taps = eagle3_taps,
            .check = check_eagle3,
            .limits = limits_of,
            .bytes = bytes_of,
            .load = [](const DraftSource& source) -> std::shared_ptr<const DraftWeights> {
                return std::make_shared<Weights>(source);
            },
            .levels = [](const DraftSource& source, const TreeDrafterLimits& reach)
                -> std::unique_ptr<LevelModel> { return std::make_unique<Levels>(source, reach); }};
}

}  // namespace aerie
