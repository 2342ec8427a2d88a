// There is no op for silu alone, so Gated runs with ones as the other factor.
#include "draft/heads/res_block.h"

#include <algorithm>

#include "core/error.h"
#include "model/tensors.h"

namespace aerie {

namespace {

constexpr const char* kPrefixLayer = "prefix_embeding_layer.layers.0.";
constexpr const char* kPrefixNorm = "prefix_embeding_layer.norm.weight";

// Medusa's tree of 63 nodes below the root (mc_sim_7b_63), which Hydra uses, too.
const TreePaths& published_tree() {
    static const TreePaths tree = [] {
        TreePaths paths;
        for (int i = 0; i < 10; ++i) paths.push_back({i});
        const auto add = [&](std::vector<int> parent, int count) {
            for (int i = 0; i < count; ++i) {
                paths.push_back(parent);
                paths.back().push_back(i);
            }
        };
        add({0}, 10);
        add({1}, 7);
        add({2}, 3);
        add({3}, 2);
        for (int i : {4, 5, 6, 7, 8, 9}) add({i}, 1);
        add({0, 0}, 10);
        add({0, 1}, 3);
        add({0, 2}, 2);
        for (int i : {3, 4, 5, 6, 7}) add({0, i}, 1);
        add({1, 0}, 2);
        add({2, 0}, 1);
        add({0, 0, 0}, 2);
        return paths;
    }();
    return tree;
}

Vector bias_of(const WeightLoader& loader, const std::string& name, int size) {
    return loader.has(name) ? loader.vector(name, size) : Vector{};
}

DType type_of(const DraftPlan& plan) {
    const std::string& first = parallel_heads(*plan.head).heads[0].blocks[0];
    const NamedTensor* tensor = plan.source->tensors.find(first + "linear.weight");
    return plan.weights.value_or(tensor ? tensor->dtype : DType::F32);
}

bool shares_lm_head(const DraftPlan& plan) {
    return parallel_heads(*plan.head).heads[0].lm_head.empty();
}

}  // namespace

void ResScratch::add_to(TensorPlan& plan, int rows, int hidden, int widest) {
    plan.add(gate_up, DType::F32, rows, 2 * hidden);
    plan.add(active, DType::F32, rows, hidden);
    plan.add(joined, DType::F32, rows, hidden);
    plan.add(states, DType::F32, rows, hidden);
    plan.add(input, DType::F32, rows, widest);
}

void ResScratch::write_ones(Backend& be) const {
    const std::vector<float> ones(size_t(gate_up.rows) * size_t(gate_up.cols), 1.0f);
    be.write(gate_up, ones.data());
}

ResBlock::ResBlock(const WeightLoader& loader, const std::string& prefix, int hidden, int inputs)
    : linear_(loader.matrix({{prefix + "linear.weight", hidden}}, inputs * hidden)),
      bias_(loader.vector(prefix + "linear.bias", hidden)) {
    if (inputs == 1) return;
    joining_ = loader.matrix({{prefix + "res_connection.weight", hidden}}, inputs * hidden);
    joining_bias_ = loader.vector(prefix + "res_connection.bias", hidden);
}

void ResBlock::run(Backend& be, const ResScratch& scratch, Tensor out, Tensor x) const {
    const int m = x.rows, hidden = linear_->rows;
    const Tensor gate_up = scratch.gate_up.row_range(0, m), active = scratch.active.row_range(0, m);
    const Tensor input = activation(be, x, *linear_, scratch.input, "block input");
    be.run(Matmul{gate_up.col_range(0, hidden), input, *linear_, Accumulate::no, bias_}, "linear");
    be.run(Gated{active, gate_up, Activation::silu}, "silu");
    if (joining_) {
        x = scratch.joined.row_range(0, m);
        be.run(Matmul{x, input, *joining_, Accumulate::no, joining_bias_}, "joining");
    }
    be.run(Add{out, x, active}, "block");
}

int inputs_of(const ParallelHeads& heads, int i) {
    return heads.sees_path ? i + 2 : 1;
}

int most_inputs(const ParallelHeads& heads) {
    return inputs_of(heads, int(heads.heads.size()) - 1);
}

ParallelWeights::ParallelWeights(const WeightLoader& loader, const HeadConfig& config) {
    const ParallelHeads& all = parallel_heads(config);
    for (int i = 0; i < int(all.heads.size()); ++i) {
        const ParallelHeads::Head& names = all.heads[size_t(i)];
        Head head;
        for (const std::string& block : names.blocks)
            head.blocks.emplace_back(loader, block, config.hidden,
                                     head.blocks.empty() ? inputs_of(all, i) : 1);
        if (!names.lm_head.empty()) {
            head.lm_head = loader.matrix({{names.lm_head + "weight", config.vocab}}, config.hidden);
            head.lm_head_bias = bias_of(loader, names.lm_head + "bias", config.vocab);
        }
        heads.push_back(std::move(head));
    }
    if (!all.has_prefix) return;
    prefix = std::make_unique<DecoderLayer>(loader, config, kPrefixLayer, true);
    prefix_norm = loader.norm(kPrefixNorm, config.hidden);
}

ParallelWeights::ParallelWeights(const DraftSource& source)
    : ParallelWeights({source.backend, source.plan.source->tensors, source.plan.weights},
                      *source.plan.head) {
    if (shares_lm_head(source.plan) && !source.target.lm_head().is_stored_as(type_of(source.plan)))
        shared_lm_head = source.target.copy_lm_head(type_of(source.plan));
}

void ParallelWeights::logits(Backend& be, const Target& target, const ResScratch& scratch, int i,
                             Tensor out, Tensor x) const {
    const Head& head = heads[size_t(i)];
    const Tensor states = scratch.states.row_range(0, x.rows);
    for (const ResBlock& block : head.blocks) {
        block.run(be, scratch, states, x);
        x = states;
    }
    const Weight& lm_head = head.lm_head     ? *head.lm_head
                            : shared_lm_head ? *shared_lm_head
                                             : target.lm_head();
    const Tensor input = activation(be, x, lm_head, scratch.input, "LM head input");
    be.run(Matmul{out, input, lm_head, Accumulate::no, head.lm_head_bias}, "logits");
}

int parallel_levels(const DraftPlan& plan) {
    return int(parallel_heads(*plan.head).heads.size());
}

void check_parallel(const DraftPlan& plan) {
    const auto check = [&](const char* what, int have, int want) {
        if (have != want)
            throw Error(plan.source->path.string() + ": this head has " + what + " " +
                        std::to_string(have) + ", the target has " + std::to_string(want));
    };
    check("hidden size", plan.head->hidden, plan.target.hidden);
    check("vocabulary size", plan.head->vocab, plan.target.vocab);
    refuse_other_tensors(parallel_heads(*plan.head), plan.source->tensors);
}

Limits parallel_limits(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    Limits limits = pass_limits(*plan.head, reach.rows(plan.pass_rows), reach.slots(plan.context));
    limits.widest =
        std::max(limits.widest, most_inputs(parallel_heads(*plan.head)) * plan.head->hidden);
    return limits;
}

namespace {

std::vector<TensorShape> tensors_of(const HeadConfig& config) {
    return tensors_loaded(config,
                          [&](const WeightLoader& loader) { ParallelWeights(loader, config); });
}

}  // namespace

DraftBytes parallel_weight_bytes(const DraftPlan& plan) {
    const Checkpoint& tensors = plan.source->tensors;
    const std::vector<TensorShape> shapes = tensors_of(*plan.head);
    DraftBytes bytes;
    bytes.types = matrix_bytes(tensors, shapes, plan.weights);
    const DType type = type_of(plan);
    if (shares_lm_head(plan) && type != plan.lm_head_type)
        bytes.types[type] += dense_bytes(type, plan.target.vocab, plan.target.hidden);
    bytes.weights = sum(bytes.types) + vector_bytes(tensors, shapes);
    return bytes;
}

Growth parallel_growth(const DraftOptions& options) {
    if (options.static_tree) return {*options.static_tree, {}};
    if (options.is_published) return {published_tree(), {}};
    return dynamic_growth(options);
}

DraftHead parallel_head() {
    DraftHead head;
    head.complete = complete_parallel_heads;
    head.taps = [](const DraftPlan& plan) { return Taps{plan.target.layers}; };
    head.check = check_parallel;
    head.limits = parallel_limits;
    head.load = [](const DraftSource& source) -> std::shared_ptr<const DraftWeights> {
        return std::make_shared<ParallelWeights>(source);
    };
    head.most_levels = parallel_levels;
    return head;
}

}  // namespace aerie
