// The table of draft methods.
#include "draft/methods.h"

#include <algorithm>

#include "core/error.h"
#include "core/float_environment.h"
#include "core/utf8.h"
#include "draft/heads/kinds.h"

namespace aerie {

DraftMethod best_method();
DraftMethod none_method();
DraftMethod lookup_method();
DraftMethod lookahead_method();

namespace {

// Marks a method whose drafts may be drawn: the shape of its trees does not depend on the drafts.
DraftMethod drawn(DraftMethod method) {
    method.is_drawn = true;
    return method;
}

// Adds the default methods of heads, or of draft models.
void add_methods(std::vector<DraftMethod>& methods, DraftNeeds needs) {
    for (const DraftHead& head : draft_heads()) {
        if (head.needs != needs) continue;
        methods.push_back(head_method(head.method));
        methods.back().is_replayed = !head.recorded.empty();
    }
}

std::vector<DraftMethod> all_methods() {
    std::vector<DraftMethod> methods = {none_method(), lookup_method(), lookahead_method()};
    methods.push_back(drawn(head_method(
        {"chain",
         "the likeliest tokens of a head or a smaller model, one after another, as many as pay",
         chain_growth, false})));
    methods.push_back(
        drawn(head_method({"eagle1", "the head's tokens in EAGLE-1's tree, as much of it as pays",
                           static_growth, false, true})));
    add_methods(methods, DraftNeeds::head);
    methods.push_back(head_method(
        {"grafted",
         "that of whatever head or smaller model, and of what followed the same words earlier "
         "where that is likelier",
         grafted_growth}));
    add_methods(methods, DraftNeeds::language_model);
    methods.push_back(best_method());
    return methods;
}

}  // namespace

std::span<const DraftMethod> draft_methods() {
    static const std::vector<DraftMethod> methods = all_methods();
    return methods;
}

const DraftMethod& draft_method(const std::string& name) {
    const std::string known = name == kFormerBest ? "best" : name;
    for (const DraftMethod& method : draft_methods())
        if (method.name == known) return method;
    throw UsageError("no drafter is called " + in_quotes(name));
}

void check_draft_options(const DraftOptions& options) {
    const DraftMethod& method = draft_method(options.method);
    if (options.lookahead) check_lookahead_shape(*options.lookahead);
    if (options.accept == AcceptRule::keyed) return;
    if (!method.is_drawn) {
        std::string names;
        for (const DraftMethod& other : draft_methods())
            if (other.is_drawn) names += (names.empty() ? "" : " or ") + other.name;
        throw UsageError(
            "--accept p/q keeps the distribution only where drafts are drawn at random: "
            "with --draft " +
            names + ", not " + method.name);
    }
    // The shape of these trees depends on the drafted tokens.
    if (options.tree || options.shape_policy || options.on_level)
        throw UsageError("--accept p/q takes no --tree: its trees are fixed before they are drawn");
}

const DraftMethod& default_draft_method(const DraftHead* head, const DraftOptions& options) {
    if (!head) return draft_method("best");
    if (options.static_tree) {
        if (head->method.takes_tree_file) return draft_method(head->method.name);
        for (const std::string& method : head->also)
            if (draft_method(method).takes_tree_file) return draft_method(method);
    }
    const bool wants_own =
        options.tree || options.is_published || !options.use_value || !options.rerank;
    return draft_method(wants_own ? head->method.name : "grafted");
}

namespace {

const DraftMethod& checked_method(const DraftSource& source) {
    check_draft_options(source.plan.options);
    const DraftMethod& method = draft_method(source.plan.options.method);
    if (method.check) method.check(source.plan);
    if (method.limits && source.plan.source) {
        const Limits wanted = method.limits(source.plan);
        const Capabilities& device = source.backend.capabilities();
        check_limits(wanted, device.most, source.plan.source->path.string(), device.name);
        source.backend.reserve(wanted);
    }
    return method;
}

}  // namespace

std::shared_ptr<const DraftWeights> load_draft_weights(const DraftSource& source) {
    const FloatEnvironment environment;
    return checked_method(source).load(source);
}

std::unique_ptr<Drafter> make_drafter(DraftSource source) {
    const FloatEnvironment environment;
    const DraftMethod& method = checked_method(source);
    if (method.load && !source.weights) source.weights = method.load(source);
    return method.make(source);
}

}  // namespace aerie
