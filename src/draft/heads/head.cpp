// Makes the rows of methods that draft with heads.
#include "draft/heads/head.h"

#include <algorithm>

#include "core/error.h"
#include "draft/heads/kinds.h"
#include "draft/ngram/continuations.h"

namespace aerie {

TargetIds::TargetIds(Backend& be, std::span<const int32_t> ids) {
    if (ids.empty()) return;
    memory_ = be.allocate(dense_bytes(DType::I32, 1, int(ids.size())));
    tensor_ = dense(memory_.get(), DType::I32, 1, int(ids.size()));
    be.write(tensor_, ids.data());
}

int64_t TreeDrafterLimits::shared_slots(const DraftPlan& plan) const {
    return aerie::shared_slots(plan.cache_tokens, plan.sequences, nodes + slots(0) + kPageSize);
}

KvShape head_kv(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    return {1,
            plan.head->kv_columns(),
            plan.kv,
            reach.slots(plan.context),
            plan.sequences,
            reach.shared_slots(plan)};
}

DType lm_head_type(const Checkpoint& head, std::optional<DType> weights) {
    const NamedTensor* fc = head.find("fc.weight");
    return weights.value_or(fc ? fc->dtype : DType::F32);
}

namespace {

using Kinds = std::vector<const DraftHead*>;

const DraftHead& kind_of(const DraftPlan& plan) {
    return *plan.head->kind;
}

Kinds kinds_for(const std::string& method) {
    Kinds named, all;
    for (const DraftHead& head : draft_heads()) {
        all.push_back(&head);
        if (head.method.name == method ||
            std::find(head.also.begin(), head.also.end(), method) != head.also.end())
            named.push_back(&head);
    }
    return named.empty() ? all : named;
}

std::string one_of(const Kinds& kinds) {
    std::string names;
    for (const DraftHead* kind : kinds) names += (names.empty() ? "" : " or ") + kind->name;
    return names;
}

// A head of a kind with the method as its default fits best.
std::vector<std::string> endings_for(const std::string& method, const Kinds& kinds) {
    if (const DraftHead* head = head_of_method(method)) return {head->ending};
    std::vector<std::string> endings;
    for (const DraftHead* kind : kinds) endings.push_back(kind->ending);
    return endings;
}

void check_kind(const DraftPlan& plan, const std::string& method, const Kinds& kinds) {
    const DraftHead& head = kind_of(plan);
    if (std::find(kinds.begin(), kinds.end(), &head) != kinds.end()) return;
    throw Error(plan.source->path.string() + ": " + head.name + "; --draft " + method + " needs " +
                one_of(kinds));
}

void check_chain_length(const DraftPlan& plan) {
    const auto most = kind_of(plan).most_levels;
    const std::optional<int> length = plan.options.chain_length;
    if (plan.options.method == "chain" && length && most && *length > most(plan))
        throw UsageError(plan.source->path.string() + ": " + kind_of(plan).name + " drafts " +
                         std::to_string(most(plan)) + " tokens at most, so no chain of " +
                         std::to_string(*length));
}

}  // namespace

DraftMethod head_method(const HeadMethod& wanted) {
    const Kinds kinds = kinds_for(wanted.name);
    const auto growth = [grows = wanted.growth](const DraftPlan& plan) {
        const auto most = kind_of(plan).most_levels;
        return most ? within(grows(plan.options), most(plan)) : grows(plan.options);
    };
    const auto reach = [growth](const DraftPlan& plan) {
        return reach_of(growth(plan), plan.together);
    };
    DraftMethod method;
    method.name = wanted.name;
    method.help = wanted.help;
    method.takes_tree = wanted.takes_tree;
    method.takes_tree_file = wanted.takes_tree_file;
    method.has_published = !wanted.growth(DraftOptions{}).has_grafts;
    method.needs = kinds.front()->needs;
    method.wants = one_of(kinds);
    method.beside = endings_for(wanted.name, kinds);
    method.reach = [reach, growth](const DraftPlan& plan) {
        const TreeDrafterLimits most = reach(plan);
        const int depth = growth(plan).has_grafts ? kGraftDepth : 0;
        return DraftReach{most.nodes, std::max(most.levels, depth), kind_of(plan).taps(plan)};
    };
    method.check = [kinds, name = wanted.name](const DraftPlan& plan) {
        check_kind(plan, name, kinds);
        kind_of(plan).check(plan);
        check_chain_length(plan);
    };
    method.limits = [reach](const DraftPlan& plan) {
        return kind_of(plan).limits(plan, reach(plan));
    };
    method.bytes = [reach](const DraftPlan& plan) {
        return kind_of(plan).bytes(plan, reach(plan));
    };
    if (wanted.growth(DraftOptions{}).has_grafts) method.host_bytes = continuations_bytes;
    method.weights = "head";
    method.load = [](const DraftSource& source) { return kind_of(source.plan).load(source); };
    method.make = [growth, reach](const DraftSource& source) {
        const DraftHead& head = kind_of(source.plan);
        return make_tree_drafter(source, {head.levels(source, reach(source.plan)),
                                          head.taps(source.plan), growth(source.plan)});
    };
    return method;
}

}  // namespace aerie
