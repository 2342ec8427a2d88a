// The EAGLE-3 head (eagle.md sections 1 and 2): fc over hidden states of three layers, one decoder
// layer whose attention reads the token's embedding beside that, a norm and an LM head of its own,
// often over a part of the vocabulary. A node's state is the layer's output, before the norm (after
// it in EAGLE-3.1), and goes straight into its children's pass.
#include <cstring>
#include <optional>
#include <set>

#include "core/error.h"
#include "draft/head.h"
#include "model/decoder_layer.h"
#include "model/loading.h"
#include "model/synthetic.h"

namespace aerie {

namespace {

const std::string kLayer = "midlayer.";

Taps taps_of(const DraftPlan& plan) {
    const std::vector<int>& taps = plan.head->eagle3->taps;
    return taps.empty() ? usual_taps(plan.target.layers) : taps;
}

int feature_columns_of(const ModelConfig& head) {
    return head.eagle3->tap_count() * head.eagle3->target_hidden;
}

bool has_own_lm_head(const Checkpoint& tensors) {
    return tensors.find("lm_head.weight") != nullptr;
}

void check_fits(const DraftPlan& plan) {
    const Eagle3Shape& shape = *plan.head->eagle3;
    const std::string& folder = plan.source->path.string();
    const auto check = [&](const char* what, int have, int want) {
        if (have != want)
            throw Error(folder + ": this head is for a target with " + what + " " +
                        std::to_string(have) + ", this one has " + std::to_string(want));
    };
    check("hidden size", shape.target_hidden, plan.target.hidden);
    check("vocabulary size", plan.head->vocab, plan.target.vocab);
    for (const int tap : taps_of(plan))
        if (tap > plan.target.layers)
            throw Error(folder + ": this head reads layer " + std::to_string(tap) +
                        ", the target has " + std::to_string(plan.target.layers));
    const Checkpoint& tensors = plan.source->tensors;
    if (!tensors.find("embed_tokens.weight") && plan.head->hidden != plan.target.hidden)
        throw Error(folder + ": no 'embed_tokens.weight', and the target's has " +
                    std::to_string(plan.target.hidden) + " columns, not " +
                    std::to_string(plan.head->hidden));
    const bool can_share =
        shape.vocab == plan.target.vocab && plan.head->hidden == plan.target.hidden;
    if (!has_own_lm_head(tensors) && !can_share)
        throw Error(folder +
                    ": an EAGLE-3 head without 'lm_head.weight', and the target's does "
                    "not fit");
}

// The last two are the target's own, which training with speculators may leave beside the head.
void refuse_unknown_tensors(const ModelConfig& head, const Checkpoint& tensors) {
    std::set<std::string> known = {"d2t", "t2d", "verifier_lm_head.weight", "verifier_norm.weight"};
    for (const TensorShape& tensor : head_tensors(head)) known.insert(tensor.name);
    for (const auto& [name, tensor] : tensors.tensors())
        if (!known.count(name))
            throw Error(tensors.describe(tensor) + " is no part of an EAGLE-3 head");
}

// d2t: how much larger the target's id of each of the head's is.
std::vector<int64_t> read_offsets(const Checkpoint& tensors, const NamedTensor& d2t, int vocab) {
    const std::string what = tensors.describe(d2t);
    const bool is_short = d2t.dtype == DType::I32;
    if ((!is_short && d2t.dtype != DType::I64) || d2t.shape != std::vector<int64_t>{vocab})
        throw Error(what + " is " + name(d2t.dtype) + " " + d2t.shape_text() + ", expected i64 [" +
                    std::to_string(vocab) + "]");
    const auto bytes = tensors.read(d2t);
    std::vector<int64_t> offsets(static_cast<size_t>(vocab));
    for (size_t i = 0; i < offsets.size(); ++i) {
        int32_t value = 0;
        if (is_short) {
            std::memcpy(&value, bytes.get() + i * sizeof(value), sizeof(value));
            offsets[i] = value;
        } else {
            std::memcpy(&offsets[i], bytes.get() + i * sizeof(int64_t), sizeof(int64_t));
        }
    }
    return offsets;
}

// t2d: which of the target's ids there are.
void check_members(const Checkpoint& tensors, const std::vector<bool>& taken) {
    const NamedTensor* members = tensors.find("t2d");
    if (!members) return;
    const std::string what = tensors.describe(*members);
    if (members->dtype != DType::Bool || members->shape != std::vector{int64_t(taken.size())})
        throw Error(what + " is " + name(members->dtype) + " " + members->shape_text() +
                    ", expected bool [" + std::to_string(taken.size()) + "]");
    const auto flags = tensors.read(*members);
    for (size_t id = 0; id < taken.size(); ++id)
        if ((flags[id] != std::byte(0)) != taken[id])
            throw Error(what + " and 'd2t' disagree about token " + std::to_string(id));
}

// The target's id of each of the head's; empty: they are the same.
std::vector<int32_t> target_ids_of(const ModelConfig& head, const Checkpoint& tensors) {
    const int vocab = head.eagle3->vocab;
    const NamedTensor* d2t = tensors.find("d2t");
    if (!d2t) {
        if (vocab == head.vocab) return {};
        throw Error(tensors.folder().string() + ": no tensor 'd2t', and a draft vocabulary of " +
                    std::to_string(vocab) + " of " + std::to_string(head.vocab));
    }
    const std::vector<int64_t> offsets = read_offsets(tensors, *d2t, vocab);
    std::vector<int32_t> ids;
    std::vector<bool> taken(size_t(head.vocab));
    bool is_same = vocab == head.vocab;
    for (int i = 0; i < vocab; ++i) {
        const int64_t offset = offsets[size_t(i)];
        const bool fits = offset >= -i && offset < int64_t(head.vocab) - i;
        if (!fits || taken[size_t(i + offset)])
            throw Error(tensors.describe(*d2t) + ": entry " + std::to_string(i) + " is " +
                        std::to_string(offset) +
                        (fits ? ", a token that another has" : ", which leads to no token"));
        taken[size_t(i + offset)] = true;
        ids.push_back(int32_t(i + offset));
        is_same &= offset == 0;
    }
    check_members(tensors, taken);
    return is_same ? std::vector<int32_t>() : ids;
}

struct Weights final : DraftWeights {
    explicit Weights(const DraftSource& source);

    std::unique_ptr<Weight> embedding;  // [vocab, hidden]; absent: the target's
    std::unique_ptr<Weight> fc;         // [hidden, taps * target_hidden]
    std::unique_ptr<Weight> lm_head;    // [draft vocab, hidden]; absent: the target's
    std::optional<SelfAttention> attention;
    std::optional<DenseFfn> ffn;
    Vector input_norm, hidden_norm, ffn_norm, output_norm;
    std::vector<Vector> tap_norms;  // none, or one for each tap
    Vector features_norm;           // of all taps; may be absent
    TargetIds target_ids;
};

Weights::Weights(const DraftSource& source) {
    const ModelConfig& head = *source.plan.head;
    const Eagle3Shape& shape = *head.eagle3;
    const Checkpoint& tensors = source.plan.source->tensors;
    refuse_unknown_tensors(head, tensors);
    target_ids = TargetIds(source.backend, target_ids_of(head, tensors));
    const WeightLoader loader(source.backend, tensors, source.plan.weights);
    if (tensors.find("embed_tokens.weight"))
        embedding =
            loader.matrix({{"embed_tokens.weight", head.vocab}}, head.hidden, WeightUse::lookup);
    fc = loader.matrix({{"fc.weight", head.hidden}}, feature_columns_of(head));
    attention.emplace(loader, head, kLayer + "self_attn.", 2 * head.hidden);
    ffn.emplace(loader, head, kLayer + "mlp.");
    input_norm = loader.vector(kLayer + "input_layernorm.weight", head.hidden);
    hidden_norm = loader.vector(kLayer + "hidden_norm.weight", head.hidden);
    ffn_norm = loader.vector(kLayer + "post_attention_layernorm.weight", head.hidden);
    output_norm = loader.vector("norm.weight", head.hidden);
    for (int i = 0; shape.norms_taps && i < shape.tap_count(); ++i)
        tap_norms.push_back(
            loader.vector("fc_norm." + std::to_string(i) + ".weight", shape.target_hidden));
    if (shape.norms_features)
        features_norm = loader.vector("input_norm.weight", feature_columns_of(head));
    const DType type = lm_head_type(tensors, source.plan.weights);
    if (has_own_lm_head(tensors))
        lm_head = loader.matrix({{"lm_head.weight", shape.vocab}}, head.hidden);
    else if (!source.target.lm_head().is_stored_as(type))
        lm_head = source.target.copy_lm_head(type);
}

struct Scratch {
    void add_to(TensorPlan& plan, const ModelConfig& head, int rows) {
        layer.add_to(plan, head, rows);
        plan.add(taps, DType::F32, rows, feature_columns_of(head));
        plan.add(taps_input, DType::F32, rows, feature_columns_of(head));
        plan.add(embedded, DType::F32, rows, head.hidden);
        plan.add(pair, DType::F32, rows, 2 * head.hidden);
        plan.add(pair_input, DType::F32, rows, 2 * head.hidden);
        plan.add(output, DType::F32, rows, head.hidden);
        plan.add(head_input, DType::F32, rows, head.hidden);
    }

    Activations layer;
    Tensor taps;                                // [rows, taps * target_hidden], normed
    Tensor embedded;                            // [rows, hidden]
    Tensor pair;                                // [rows, 2 hidden]: embedding beside state, normed
    Tensor output;                              // [rows, hidden], normed
    Tensor taps_input, pair_input, head_input;  // read by matmuls
};

KvShape kv_of(const DraftPlan& plan, const GrownReach& reach) {
    return {1, plan.head->kv_columns(), plan.kv, reach.slots(plan.context), plan.texts};
}

class Levels final : public LevelModel {
  public:
    Levels(const DraftSource& source, const GrownReach& reach)
        : be_(source.backend),
          target_(source.target),
          config_(*source.plan.head),
          weights_(std::static_pointer_cast<const Weights>(source.weights)),
          rope_(make_rope_table(be_, reach.positions(source.plan.context),
                                config_.attention.head_dim, config_.rope)),
          kv_(be_, kv_of(source.plan, reach)) {
        TensorPlan plan;
        scratch_.add_to(plan, config_, reach.rows(source.plan.pass_rows));
        memory_ = plan.allocate(be_);
    }

    int token_lead() const override { return 1; }
    int state_columns() const override { return config_.hidden; }
    int feature_columns() const override { return feature_columns_of(config_); }
    int vocab() const override { return config_.eagle3->vocab; }
    Tensor target_ids() const override { return weights_->target_ids; }
    KvPool& kv() override { return kv_; }

    void read(Tensor state, Tensor features, Rows rows) override;
    void forward(Tensor state, Tensor parents, Rows rows, int) override {
        be_.run(Copy{state, parents}, "state");
        run(state, rows);
    }
    void logits(Tensor out, Tensor state, int level) override;

  private:
    Tensor normed_taps(Tensor features);
    void run(Tensor x, Rows rows);
    RmsNorm norm(Tensor out, Tensor x, const Vector& weight) const {
        return {out, x, weight, config_.rms_epsilon};
    }

    Backend& be_;
    const Target& target_;
    ModelConfig config_;
    std::shared_ptr<const Weights> weights_;
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
    const int columns = config_.eagle3->target_hidden;
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

// x [M, hidden], in place.
void Levels::run(Tensor x, Rows rows) {
    const int m = rows.count(), hidden = config_.hidden;
    const Tensor embedded = scratch_.embedded.row_range(0, m), pair = scratch_.pair.row_range(0, m);
    const Weight& table = weights_->embedding ? *weights_->embedding : target_.embedding();
    const Tensor normed = pair.col_range(hidden, hidden);
    be_.run(Embed{embedded, table, rows}, "embedding");
    be_.run(norm(pair.col_range(0, hidden), embedded, weights_->input_norm), "embedding norm");
    be_.run(norm(normed, x, weights_->hidden_norm), "state norm");
    if (config_.eagle3->norms_residual) be_.run(Copy{x, normed}, "residual");
    const Tensor input =
        activation(be_, pair, weights_->attention->reader(), scratch_.pair_input, "pair");
    weights_->attention->run(be_, config_, scratch_.layer, x, input, {rows, kv_.layer(0), rope_});
    const Tensor ffn_input = weights_->ffn->input_in(be_, scratch_.layer.norm, m);
    be_.run(
        RmsNorm{ffn_input, x, weights_->ffn_norm, config_.rms_epsilon, weights_->ffn->readers()},
        "ffn norm");
    weights_->ffn->run(be_, scratch_.layer, x, ffn_input, 0);
    if (!config_.eagle3->norms_state) return;
    const Tensor output = scratch_.output.row_range(0, m);
    be_.run(norm(output, x, weights_->output_norm), "output norm");
    be_.run(Copy{x, output}, "normed state");
}

void Levels::logits(Tensor out, Tensor state, int) {
    const Weight& head = weights_->lm_head ? *weights_->lm_head : target_.lm_head();
    Tensor output = state;
    if (!config_.eagle3->norms_state) {
        output = scratch_.output.row_range(0, state.rows);
        be_.run(norm(output, state, weights_->output_norm), "output norm");
    }
    const Tensor input = activation(be_, output, head, scratch_.head_input, "LM head input");
    be_.run(Matmul{out, input, head}, "logits");
}

Limits limits_of(const DraftPlan& plan, const GrownReach& reach) {
    Limits limits = pass_limits(*plan.head, reach.rows(plan.pass_rows), reach.slots(plan.context));
    limits.widest = std::max(limits.widest, feature_columns_of(*plan.head));
    return limits;
}

DraftBytes bytes_of(const DraftPlan& plan, const GrownReach& reach) {
    const ModelConfig& head = *plan.head;
    const Checkpoint& tensors = plan.source->tensors;
    const std::vector<TensorShape> shapes = head_tensors(head);
    DraftBytes bytes;
    bytes.types = matrix_bytes(tensors, shapes, plan.weights);
    const DType type = lm_head_type(tensors, plan.weights);
    if (!has_own_lm_head(tensors) && type != plan.lm_head_type)
        bytes.types[type] += dense_bytes(type, plan.target.vocab, plan.target.hidden);
    bytes.weights = sum(bytes.types) + vector_bytes(tensors, shapes);
    Scratch scratch;
    TensorPlan rooms;
    scratch.add_to(rooms, head, reach.rows(plan.pass_rows));
    bytes.scratch =
        rooms.size_bytes() + kv_of(plan, reach).size_bytes() +
        dense_bytes(DType::F32, reach.positions(plan.context), head.attention.head_dim) +
        dense_bytes(DType::I32, 1, head.eagle3->vocab) +
        grown_bytes(plan, reach, head.hidden, feature_columns_of(head), head.eagle3->vocab);
    return bytes;
}

}  // namespace

const DraftHead kEagle3Head = {
    .kind = "an EAGLE-3 head",
    .needs = DraftNeeds::head,
    .taps = taps_of,
    .check = check_fits,
    .limits = limits_of,
    .bytes = bytes_of,
    .load = [](const DraftSource& source) -> std::shared_ptr<const DraftWeights> {
        return std::make_shared<Weights>(source);
    },
    .levels = [](const DraftSource& source, const GrownReach& reach)
        -> std::unique_ptr<LevelModel> { return std::make_unique<Levels>(source, reach); }};

}  // namespace aerie
