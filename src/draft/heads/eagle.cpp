// Loads an EAGLE-1/2 head and runs it.
#include "draft/heads/eagle.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "model/make/random_weights.h"
#include "model/make/shapes.h"
#include "model/tensors.h"

namespace aerie {

namespace {

HeadConfig config_of(const ModelSource& source) {
    const Fields all(source.config), layer = layer_fields(all);
    layer.integer("num_hidden_layers", 1, 1, 1);
    HeadConfig config{parse_layer_config(layer)};
    config.architecture = "eagle";
    return config;
}

std::vector<TensorShape> tensors_of(const HeadConfig& config) {
    return tensors_loaded(config,
                          [&](const WeightLoader& loader) { EagleWeights(loader, config); });
}

std::vector<NamedTensor> random_tensors(const HeadConfig& head, DType type) {
    std::vector<NamedTensor> tensors;
    for (const TensorShape& tensor : tensors_of(head)) tensors.push_back(described(tensor, type));
    return tensors;
}

Json json_of(const HeadConfig& head) {
    ModelConfig layer = head;
    layer.architecture = "llama";
    Json json = config_json(layer);
    if (head.qkv_bias) json.set("qkv_bias", true);
    return json;
}

// Forks of EAGLE add norms and further layers; without them the drafts would be bad, and nothing
// would say why.
void refuse_unknown_tensors(const HeadConfig& config, const Checkpoint& checkpoint) {
    // Copies that some exports contain; aerie does not use them.
    std::set<std::string> known = {"lm_head.weight", "layers.0.self_attn.rotary_emb.inv_freq"};
    for (const TensorShape& tensor : tensors_of(config)) known.insert(tensor.name);
    for (const auto& [name, tensor] : checkpoint.tensors())
        if (!known.count(name))
            throw Error(checkpoint.folder().string() + ": '" + name +
                        "' is no part of an EAGLE-1/2 head");
}

// The feature is the state that the target's LM head reads.
Taps taps_of(const DraftPlan& plan) {
    return {plan.target.layers};
}

// Number of the head's logits.
int vocab_of(const DraftPlan& plan) {
    return plan.head_ids.empty() ? plan.head->vocab : int(plan.head_ids.size());
}

DraftBytes eagle_bytes(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    const HeadConfig& head = *plan.head;
    const Checkpoint& tensors = plan.source->tensors;
    const std::vector<TensorShape> shapes = tensors_of(head);
    const DType type = lm_head_type(tensors, plan.weights);
    DraftBytes bytes;
    bytes.types = matrix_bytes(tensors, shapes, plan.weights);
    const int vocab = vocab_of(plan);
    if (!plan.head_ids.empty() || type != plan.lm_head_type)
        bytes.types[type] += dense_bytes(type, vocab, plan.target.hidden);
    bytes.weights = sum(bytes.types) + vector_bytes(tensors, shapes);
    EagleScratch scratch;
    TensorPlan of_scratch;
    scratch.add_to(of_scratch, head, reach.rows(plan.pass_rows));
    bytes.scratch =
        of_scratch.size_bytes() + head_kv(plan, reach).size_bytes() +
        dense_bytes(DType::F32, reach.positions(plan.context), head.attention.head_dim) +
        dense_bytes(DType::I32, 1, int(plan.head_ids.size())) +
        tree_drafter_bytes(plan, reach, head.hidden, head.hidden, vocab);
    return bytes;
}

void check_fits(const DraftPlan& plan) {
    const auto check = [&](const char* what, int have, int want) {
        if (have != want)
            throw Error(plan.source->path.string() + ": this head has " + what + " " +
                        std::to_string(have) + ", the target has " + std::to_string(want));
    };
    check("hidden size", plan.head->hidden, plan.target.hidden);
    check("vocabulary size", plan.head->vocab, plan.target.vocab);
}

}  // namespace

HeadConfig eagle_shape(const ModelConfig& target) {
    HeadConfig head{target};
    head.architecture = "eagle";
    head.layers = 1;
    head.windows.clear();
    head.experts = {};
    head.qk_norm = false;
    return head;
}

void EagleScratch::add_to(TensorPlan& plan, const ModelConfig& config, int rows) {
    layer.add_to(plan, config, rows);
    plan.add(pair, DType::F32, rows, 2 * config.hidden);
    plan.add(pair_input, DType::F32, rows, 2 * config.hidden);
    plan.add(head_input, DType::F32, rows, config.hidden);
}

EagleWeights::EagleWeights(const WeightLoader& loader, const HeadConfig& config) {
    if (loader.has("embed_tokens.weight"))
        embedding = loader.matrix({{"embed_tokens.weight", config.vocab}}, config.hidden,
                                  WeightUse::lookup);
    fc = loader.matrix({{"fc.weight", config.hidden}}, 2 * config.hidden);
    if (loader.has("fc.bias")) fc_bias = loader.vector("fc.bias", config.hidden);
    layer = std::make_unique<DecoderLayer>(loader, config, "layers.0.", false);
}

namespace {

WeightLoader checked_loader(const DraftSource& source) {
    refuse_unknown_tensors(*source.plan.head, source.plan.source->tensors);
    return {source.backend, source.plan.source->tensors, source.plan.weights};
}

}  // namespace

EagleWeights::EagleWeights(const DraftSource& source)
    : EagleWeights(checked_loader(source), *source.plan.head) {
    const Checkpoint& tensors = source.plan.source->tensors;
    const DType type = lm_head_type(tensors, source.plan.weights);
    const std::span<const int32_t> ids = source.plan.head_ids;
    if (!ids.empty() || !source.target.lm_head().is_stored_as(type))
        own_lm_head = source.target.copy_lm_head(type, ids);
    target_ids = TargetIds(source.backend, ids);
}

EagleLevels::EagleLevels(const DraftSource& source, const TreeDrafterLimits& reach)
    : be_(source.backend),
      target_(source.target),
      config_(*source.plan.head),
      first_weights_(std::static_pointer_cast<const EagleWeights>(source.weights)),
      weights_(first_weights_),
      rope_(make_rope_table(be_, reach.positions(source.plan.context), config_)),
      kv_(be_, head_kv(source.plan, reach)) {
    TensorPlan plan;
    scratch_.add_to(plan, config_, reach.rows(source.plan.pass_rows));
    memory_ = plan.allocate(be_);
}

void EagleLevels::run(Tensor out, const ParentStates& features, Rows rows) {
    const Tensor pair = scratch_.pair.row_range(0, rows.count());
    const Tensor input = activation_in(be_, scratch_.pair_input, *weights_->fc, rows.count());
    const Weight& table = weights_->embedding ? *weights_->embedding : target_.embedding();
    be_.run(EmbedPair{input, pair, table, rows, features.states, features.index}, "fc input");
    be_.run(Matmul{out, input, *weights_->fc, Accumulate::no, weights_->fc_bias}, "fc");
    weights_->layer->run(be_, config_, scratch_.layer, out, {rows, kv_.layer(0), rope_});
}

void EagleLevels::logits(Tensor out, Tensor state, int, int) {
    const Weight& head = weights_->lm_head(target_);
    const Tensor input = activation(be_, state, head, scratch_.head_input, "LM head input");
    be_.run(Matmul{out, input, head}, "logits");
}

DraftHead eagle_head() {
    return {.name = "an EAGLE-1/2 head",
            .ending = "-eagle",
            .method = {"eagle2", "EAGLE-2's tree of the likeliest tokens", dynamic_growth},
            .also = {"eagle1"},
            .recorded = "EAGLE-2",
            .config = config_of,
            .random = {.shape = eagle_shape, .config_json = json_of, .tensors = random_tensors},
            .has_draft_vocab = true,
            .taps = taps_of,
            .check = check_fits,
            .limits =
                [](const DraftPlan& plan, const TreeDrafterLimits& reach) {
                    return pass_limits(*plan.head, reach.rows(plan.pass_rows),
                                       reach.slots(plan.context));
                },
            .bytes = eagle_bytes,
            .load = [](const DraftSource& source) -> std::shared_ptr<const DraftWeights> {
                return std::make_shared<EagleWeights>(source);
            },
            .levels = [](const DraftSource& source,
                         const TreeDrafterLimits& reach) -> std::unique_ptr<LevelModel> {
                return std::make_unique<EagleLevels>(source, reach);
            }};
}

}  // namespace aerie
