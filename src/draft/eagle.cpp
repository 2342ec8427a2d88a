// The stable pass over true features, and the factory of the EAGLE drafters.
#include "draft/eagle.h"

#include <algorithm>

#include "backend/ops.h"
#include "core/error.h"
#include "core/float_environment.h"

namespace aerie {

namespace {

bool is_auto(const DraftOptions& options) {
    return options.kind == DraftKind::eagle2 && !options.tree && options.use_value &&
           options.rerank;
}

// With a tree: a chain is the narrowest dynamic one, ablations are of the paper's.
DraftOptions as_dynamic(DraftOptions options) {
    if (options.kind == DraftKind::chain)
        options.tree = {options.chain_length + 1, options.chain_length, 1};
    else if (!options.tree)
        options.tree = is_auto(options) ? kMostAuto : TreeShape{};
    return options;
}

EagleReach reach_of(const DraftOptions& options) {
    return options.kind == DraftKind::eagle1 ? static_reach(options)
                                             : dynamic_reach(as_dynamic(options));
}

}  // namespace

HeadLimits EagleReach::head_limits(const ModelConfig& head, DType kv, int context,
                                   int pass_rows) const {
    return {std::max(pass_rows, grow.width), context + levels + 1,
            KvShape{1, head.kv_columns(), kv, context + draft_slots}};
}

void EagleTensors::add_to(TensorPlan& plan, int hidden_size, const EagleReach& reach, int context,
                          int pass_rows) {
    // A cycle at the very end of the context commits a whole path beyond it.
    plan.add(features, DType::F32, context + reach.levels + 1, hidden_size);
    plan.add(rows, DType::I32, pass_rows, kRowInts);
    plan.add(hidden, DType::F32, pass_rows, hidden_size);
}

EagleDrafter::EagleDrafter(const HeadSource& source, const EagleReach& reach,
                           const DraftOptions& options)
    : be_(source.backend),
      reach_(reach),
      head_(source.backend, source.config, source.checkpoint, source.weights, source.target,
            reach.head_limits(source.config, source.kv, source.context, source.pass_rows)),
      grower_(source.backend, head_, reach.grow, options),
      pass_rows_(source.pass_rows) {
    if (reach.grow.top_k > source.config.vocab)
        throw UsageError("a vocabulary of " + std::to_string(source.config.vocab) + " has no " +
                         std::to_string(reach.grow.top_k) + " candidates");
    TensorPlan plan;
    t_.add_to(plan, source.config.hidden, reach, source.context, pass_rows_);
    memory_ = plan.allocate(be_);
    tokens_.reserve(size_t(t_.features.rows));
    rows_.reserve(size_t(pass_rows_));
}

void EagleDrafter::observe(Tensor features, std::span<const int> next_tokens, int position) {
    if (position == 0) {
        tokens_.clear();
        first_ = read_ = 0;
    }
    copy(be_, t_.features.row_range(position, int(next_tokens.size())), features);
    tokens_.insert(tokens_.end(), next_tokens.begin(), next_tokens.end());
}

void EagleDrafter::catch_up(int window) {
    if (backlog() > window) first_ = read_ = int(tokens_.size()) - window;
    while (const int count = std::min(backlog(), pass_rows_)) {
        rows_.assign(size_t(count), {});
        for (int i = 0; i < count; ++i) {
            rows_[size_t(i)].token = tokens_[size_t(read_ + i)];
            rows_[size_t(i)].position = rows_[size_t(i)].slot = rows_[size_t(i)].prefix =
                read_ + i - first_;
        }
        const Rows rows{t_.rows.row_range(0, count)};
        be_.write(rows.block, rows_.data());
        head_.forward(t_.hidden.row_range(0, count), t_.features.row_range(read_, count), rows);
        read_ += count;
    }
}

std::span<const Candidate> EagleDrafter::expand(const Expansion& expansion,
                                                const DraftContext& context) {
    catch_up();
    return grower_.expand(expansion, last(), context);
}

std::span<const Candidate> EagleDrafter::grow(FrontierPolicy& policy, int top_k,
                                              const DraftContext& context) {
    catch_up();
    return grower_.grow(policy, top_k, last(), context);
}

HeadPosition EagleDrafter::last() const {
    const int row = int(rows_.size()) - 1;
    return {t_.hidden.row_range(row, 1), {t_.rows.row_range(row, 1)}, rows_.back()};
}

std::unique_ptr<Drafter> make_eagle(const HeadSource& source, const DraftOptions& options) {
    const FloatEnvironment environment;
    const Limits wanted = eagle_limits(source.config, options, source.context, source.pass_rows);
    check_limits(wanted, source.backend.capabilities().most, source.checkpoint.folder().string(),
                 source.backend.capabilities().name);
    source.backend.reserve(wanted);
    if (options.kind == DraftKind::eagle1) return make_eagle1(source, options);
    return is_auto(options) ? make_eagle_auto(source, as_dynamic(options))
                            : make_eagle2(source, as_dynamic(options));
}

Limits eagle_limits(const ModelConfig& head, const DraftOptions& options, int context,
                    int pass_rows) {
    const HeadLimits limits = reach_of(options).head_limits(head, DType::F16, context, pass_rows);
    return pass_limits(head, limits.rows, limits.kv.slots);
}

DraftReach draft_reach(const DraftOptions& options, const ModelConfig& target) {
    if (options.kind == DraftKind::none) return {};
    return reach_of(options).draft_reach(target);
}

size_t eagle_scratch_bytes(const ModelConfig& head, const DraftOptions& options, DType kv,
                           int context, int pass_rows) {
    const EagleReach reach = reach_of(options);
    GrowScratch scratch;
    EagleTensors tensors;
    TensorPlan plan;
    scratch.add_to(plan, reach.grow, head.hidden, head.vocab);
    tensors.add_to(plan, head.hidden, reach, context, pass_rows);
    return plan.size_bytes() +
           head_scratch_bytes(head, reach.head_limits(head, kv, context, pass_rows));
}

}  // namespace aerie
