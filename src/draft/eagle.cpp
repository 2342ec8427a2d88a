// The stable pass over true features, and the factory of the EAGLE drafters.
#include "draft/eagle.h"

#include <algorithm>

#include "core/error.h"

namespace aerie {

namespace {

// A chain is the narrowest dynamic tree.
DraftOptions as_dynamic(DraftOptions options) {
    if (options.kind == DraftKind::chain)
        options.tree = {options.chain_length + 1, options.chain_length, 1};
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

EagleDrafter::EagleDrafter(const HeadSource& source, const EagleReach& reach, Proposals proposals)
    : be_(source.backend),
      reach_(reach),
      head_(source.backend, source.config, source.checkpoint, source.weights, source.target,
            reach.head_limits(source.config, source.kv, source.context, source.pass_rows)),
      grower_(source.backend, head_, reach.grow, proposals) {
    if (reach.grow.top_k > source.config.vocab)
        throw UsageError("a vocabulary of " + std::to_string(source.config.vocab) + " has no " +
                         std::to_string(reach.grow.top_k) + " candidates");
    TensorPlan plan;
    plan.add(rows_, DType::I32, source.pass_rows, kRowInts);
    plan.add(hidden_, DType::F32, source.pass_rows, source.config.hidden);
    memory_ = plan.allocate(be_);
}

void EagleDrafter::observe(Tensor features, std::span<const int> next_tokens, int position) {
    std::vector<Row> rows(next_tokens.size());
    for (Row& row : rows) {
        row.token = next_tokens[size_t(&row - rows.data())];
        row.position = row.slot = row.prefix = position++;
    }
    const int n = int(rows.size());
    be_.write(rows_.row_range(0, n), rows.data());
    head_.forward(hidden_.row_range(0, n), features, {rows_.row_range(0, n)});
    last_ = n - 1;
}

std::vector<Candidate> EagleDrafter::expand(const Expansion& expansion,
                                            const DraftContext& context) {
    return grower_.expand(expansion, hidden_.row_range(last_, 1), {rows_.row_range(last_, 1)},
                          context);
}

std::unique_ptr<Drafter> make_eagle(const HeadSource& source, const DraftOptions& options) {
    return options.kind == DraftKind::eagle1 ? make_eagle1(source, options)
                                             : make_eagle2(source, as_dynamic(options));
}

DraftReach draft_reach(const DraftOptions& options, const ModelConfig& target) {
    if (options.kind == DraftKind::none) return {};
    return reach_of(options).draft_reach(target);
}

size_t eagle_scratch_bytes(const ModelConfig& head, const DraftOptions& options, DType kv,
                           int context, int pass_rows, DType activation) {
    const EagleReach reach = reach_of(options);
    GrowScratch scratch;
    Tensor rows, hidden;
    TensorPlan plan;
    scratch.add_to(plan, reach.grow, head.hidden, head.vocab);
    plan.add(rows, DType::I32, pass_rows, kRowInts);
    plan.add(hidden, DType::F32, pass_rows, head.hidden);
    return plan.size_bytes() +
           head_scratch_bytes(head, reach.head_limits(head, kv, context, pass_rows), activation);
}

}  // namespace aerie
