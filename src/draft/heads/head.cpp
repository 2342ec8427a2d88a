// Finds the kind of a plan's head, and makes the rows of methods that draft with heads.
#include "draft/heads/head.h"

#include <algorithm>

#include "core/error.h"
#include "draft/ngram/continuations.h"

namespace aerie {

const DraftHead& head_of(const DraftPlan& plan) {
    if (plan.head->eagle3) return kEagle3Head;
    if (plan.head->parallel) return plan.head->parallel->sees_path ? kHydraHead : kMedusaHead;
    return plan.head->architecture == "eagle" ? kEagleHead : kDraftModel;
}

TargetIds::TargetIds(Backend& be, std::span<const int32_t> ids) {
    if (ids.empty()) return;
    memory_ = be.allocate(dense_bytes(DType::I32, 1, int(ids.size())));
    tensor_ = dense(memory_.get(), DType::I32, 1, int(ids.size()));
    be.write(tensor_, ids.data());
}

KvShape head_kv(const DraftPlan& plan, const TreeDrafterLimits& reach) {
    return {1, plan.head->kv_columns(), plan.kv, reach.slots(plan.context), plan.sequences};
}

namespace {

std::string one_of(const std::vector<const DraftHead*>& kinds) {
    std::string names;
    for (const DraftHead* kind : kinds)
        names += (names.empty() ? "" : " or ") + std::string(kind->kind);
    return names;
}

void check_kind(const DraftPlan& plan, const char* method,
                const std::vector<const DraftHead*>& kinds) {
    const DraftHead& head = head_of(plan);
    if (std::find(kinds.begin(), kinds.end(), &head) != kinds.end()) return;
    throw Error(plan.source->path.string() + ": " + head.kind + "; --draft " + method + " needs " +
                one_of(kinds));
}

}  // namespace

DType lm_head_type(const Checkpoint& head, std::optional<DType> weights) {
    const NamedTensor* fc = head.find("fc.weight");
    return weights.value_or(fc ? fc->dtype : DType::F32);
}

DraftMethod head_method(const char* name, const char* help, Growth (*grows)(const DraftOptions&),
                        std::vector<const DraftHead*> kinds, std::vector<std::string> beside) {
    const auto growth = [grows](const DraftPlan& plan) {
        const auto most = head_of(plan).most_levels;
        return most ? within(grows(plan.options), most(plan)) : grows(plan.options);
    };
    const auto reach = [growth](const DraftPlan& plan) { return reach_of(growth(plan)); };
    DraftMethod method;
    method.name = name;
    method.help = help;
    method.needs = kinds.front()->needs;
    method.wants = one_of(kinds);
    method.beside = std::move(beside);
    method.reach = [reach, growth](const DraftPlan& plan) {
        const TreeDrafterLimits most = reach(plan);
        const int depth = growth(plan).has_grafts ? kGraftDepth : 0;
        return DraftReach{most.nodes, std::max(most.levels, depth), head_of(plan).taps(plan)};
    };
    method.check = [kinds = std::move(kinds), name](const DraftPlan& plan) {
        check_kind(plan, name, kinds);
        head_of(plan).check(plan);
    };
    method.limits = [reach](const DraftPlan& plan) {
        return head_of(plan).limits(plan, reach(plan));
    };
    method.bytes = [reach](const DraftPlan& plan) {
        return head_of(plan).bytes(plan, reach(plan));
    };
    if (grows(DraftOptions{}).has_grafts) method.host_bytes = continuations_bytes;
    method.weights = "head";
    method.load = [](const DraftSource& source) { return head_of(source.plan).load(source); };
    method.make = [growth, reach](const DraftSource& source) {
        const DraftHead& head = head_of(source.plan);
        return make_tree_drafter(source, {head.levels(source, reach(source.plan)),
                                          head.taps(source.plan), growth(source.plan)});
    };
    return method;
}

}  // namespace aerie
