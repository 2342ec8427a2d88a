// Prompt lookup: the tokens that followed earlier occurrences of the text's last tokens are likely
// to follow again (Saxena 2023, "Prompt Lookup Decoding"). Several such continuations make a tree.
#include <algorithm>
#include <climits>
#include <cmath>

#include "draft/methods.h"
#include "draft/ngram/continuations.h"
#include "draft/trees/tree_policy.h"

namespace aerie {

namespace {

// Least probability of a path that is proposed, whether or not the tree has a given size.
constexpr double kLeast = 0.002;

// Drafts trees of a given shape, or trees sized by measurement, for which a TreePolicy keeps the
// account.
class Lookup final : public Drafter, CostAware {
  public:
    Lookup(const DraftPlan& plan)
        : shape_(plan.options.tree.value_or(kMaxAuto)),
          is_chosen_(!plan.options.tree),
          context_(plan.context),
          clock_(plan.options.clock) {}

    static DraftReach reach_of(const DraftPlan& plan) {
        const TreeShape shape = plan.options.tree.value_or(kMaxAuto);
        check_tree_shape(shape);
        return {shape.nodes, std::min(shape.levels, shape.nodes - 1), {}};
    }

    DraftReach reach() const override {
        return {shape_.nodes, std::min(shape_.levels, shape_.nodes - 1), {}};
    }
    std::unique_ptr<DraftState> begin() override { return std::make_unique<State>(*this); }
    void observe(const Observed&) override {}
    void prepare(const DraftRequest& request) override {
        state_of(request.state).said.follow(request.tokens, Continuations::Reads::prompt);
    }

    TokenTree propose(const DraftRequest& request) override {
        State& state = state_of(request.state);
        const double start = is_chosen_ ? clock_() : 0;
        if (is_chosen_ && !state.policy.begin_grafts(costs_->root(1)))
            return TokenTree(request.tokens.back());
        state.read(request);
        ContinuationList continuations;
        state.said.likeliest(shape_.nodes - 1, shape_.levels, shape_.top_k, kLeast, continuations);
        NodeList kept;
        for (int i = 0; i < int(continuations.size()); ++i) kept.push_back(i);
        if (is_chosen_) {
            for (const Continuation& one : continuations)
                state.policy.graft(one.parent, one.token, conditional_of(continuations, one));
            kept = state.policy.kept();
            costs_->saw_root(1, clock_() - start);
        }
        return tree_of(table_of(continuations), kept, request.tokens.back());
    }

    void learn(const Verified& verified) override {
        if (!is_chosen_) return;
        TreePolicy& policy = state_of(verified.state).policy;
        policy.costs().saw_verify(verified.tree.size(), verified.seconds);
        policy.learn(verified.tree, verified.accepted, verified.next);
    }

    // One level stands for the whole proposal.
    CostAware* cost_aware() override { return is_chosen_ ? this : nullptr; }
    double level_seconds(const DraftRequest& request, int) override {
        const double start = clock_();
        State& state = state_of(request.state);
        state.read(request);
        ContinuationList continuations;
        state.said.likeliest(shape_.nodes - 1, shape_.levels, shape_.top_k, kLeast, continuations);
        return clock_() - start;
    }
    int widest_level() const override { return 1; }
    Account& account(DraftState& state) override { return state_of(state).policy.account(); }
    TreePlan planned(const DraftState& state) const override {
        return static_cast<const State&>(state).policy.planned();
    }

  private:
    struct State final : DraftState {
        explicit State(const Lookup& of)
            : drafter(of), said(of.context_), policy(of.shape_, of.allowed_, of.costs_) {}

        int positions() const override { return INT_MAX; }
        void truncate(int positions) override {
            if (positions == 0) policy.begin_text();
            said.truncate(positions);
        }
        std::unique_ptr<DraftState> fork(int) const override {
            auto other = std::make_unique<State>(drafter);
            other->said.learn_like(said);
            other->policy = policy;
            return other;
        }
        void save(SaveSink& to) const override {
            said.save(to);
            policy.save(to);
        }
        void load(SaveSource& from) override {
            said.load(from);
            policy.load(from);
        }
        void read(const DraftRequest& request) {
            said.follow(request.tokens, Continuations::Reads::answer);
        }

        const Lookup& drafter;
        Continuations said;
        TreePolicy policy;
    };

    static State& state_of(DraftState& state) { return static_cast<State&>(state); }

    std::span<const Candidate> table_of(const ContinuationList& continuations) {
        table_.clear();
        for (const Continuation& one : continuations) {
            const float value = std::log(one.probability);
            table_.push_back({one.token, one.parent, value, value});
        }
        return table_;
    }

    TreeShape shape_;
    AllowedRanks allowed_;  // all
    bool is_chosen_;
    int context_;
    Clock clock_;
    FixedVector<Candidate, kMaxNodes> table_;
};

}  // namespace

DraftMethod lookup_method() {
    DraftMethod method;
    method.name = "lookup";
    method.has_published = false;
    method.help = "what followed the same words earlier in the text; needs no head";
    method.reach = Lookup::reach_of;
    method.host_bytes = continuations_bytes;
    method.make = [](const DraftSource& source) { return std::make_unique<Lookup>(source.plan); };
    return method;
}

}  // namespace aerie
