// Which head a plan has, and the rows of the methods that draft with one.
#include "draft/head.h"

#include "core/error.h"

namespace aerie {

const DraftHead& head_of(const DraftPlan& plan) {
    return plan.head->eagle3 ? kEagle3Head : kEagleHead;
}

TargetIds::TargetIds(Backend& be, std::span<const int32_t> ids) {
    if (ids.empty()) return;
    memory_ = be.allocate(dense_bytes(DType::I32, 1, int(ids.size())));
    tensor_ = dense(memory_.get(), DType::I32, 1, int(ids.size()));
    be.write(tensor_, ids.data());
}

DType lm_head_type(const Checkpoint& head, std::optional<DType> weights) {
    const NamedTensor* fc = head.find("fc.weight");
    return weights.value_or(fc ? fc->dtype : DType::F32);
}

DraftMethod head_method(const char* name, const char* help, Growth (*growth)(const DraftOptions&),
                        const DraftHead* only) {
    const auto reach = [growth](const DraftPlan& plan) { return reach_of(growth(plan.options)); };
    DraftMethod method;
    method.name = name;
    method.help = help;
    method.needs = DraftNeeds::head;
    method.reach = [reach](const DraftPlan& plan) {
        const GrownReach most = reach(plan);
        return DraftReach{most.nodes, most.levels, head_of(plan).taps(plan)};
    };
    method.check = [only, name](const DraftPlan& plan) {
        const DraftHead& head = head_of(plan);
        if (only && only != &head)
            throw Error(plan.source->path.string() + ": an " + head.kind + " head; --draft " +
                        name + " needs an " + only->kind + " head");
        head.check(plan);
    };
    method.limits = [reach](const DraftPlan& plan) {
        return head_of(plan).limits(plan, reach(plan));
    };
    method.bytes = [reach](const DraftPlan& plan) {
        return head_of(plan).bytes(plan, reach(plan));
    };
    method.load = [](const DraftSource& source) { return head_of(source.plan).load(source); };
    method.make = [growth, reach](const DraftSource& source) {
        const DraftHead& head = head_of(source.plan);
        return make_grown(source, {head.levels(source, reach(source.plan)), head.taps(source.plan),
                                   growth(source.plan.options)});
    };
    return method;
}

}  // namespace aerie
