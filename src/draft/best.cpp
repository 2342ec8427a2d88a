// Picks one drafter in each cycle: prompt lookup, or the grafted trees of one of several heads and
// draft models. With a single one nothing is picked: its grafted trees hold what lookup finds, and
// leave the head out where it does not pay. The worth of a cycle is its tokens minus its time at
// the rate that decoding reaches, as in TreePolicy. It is known beforehand for lookup, and
// estimated from the newest cycles for the others. All drafters share one account, so together they
// may slow a text down by no more than one drafter alone.
#include <algorithm>
#include <climits>

#include "draft/drafter_choice.h"
#include "draft/methods.h"
#include "draft/trees/tree_policy.h"

namespace aerie {

namespace {

constexpr double kTrustMemory = 0.97, kTrustWeight = 8;

const DraftMethod& part_method() {
    return draft_method("grafted");
}

// The plans of all heads, one each.
std::vector<DraftPlan> head_plans(const DraftPlan& plan) {
    std::vector<DraftPlan> plans;
    if (!plan.head) return plans;
    plans.push_back(plan);
    plans.back().others.clear();
    for (const DraftPlan& other : plan.others) plans.push_back(other);
    return plans;
}

struct PartWeights final : DraftWeights {
    std::vector<std::shared_ptr<const DraftWeights>> parts;
};

class Best final : public Drafter, CostAware {
  public:
    explicit Best(const DraftSource& source);

    static DraftReach reach_of(const DraftPlan& plan) {
        DraftReach reach{kMaxAuto.nodes, kMaxAuto.levels, {}};
        for (const DraftPlan& head : head_plans(plan)) {
            const DraftReach part = part_method().reach(head);
            reach.nodes = std::max(reach.nodes, part.nodes);
            reach.depth = std::max(reach.depth, part.depth);
            reach.taps.insert(reach.taps.end(), part.taps.begin(), part.taps.end());
        }
        return reach;
    }

    DraftReach reach() const override { return reach_; }
    // The weights are those of the first head.
    void use_head(const std::shared_ptr<const DraftWeights>& weights) override {
        if (parts_.size() > 1) parts_[1].drafter->use_head(weights);
    }
    std::unique_ptr<DraftState> begin() override { return std::make_unique<State>(*this); }
    void observe(const Observed& observed) override;
    void prepare(const DraftRequest& request) override {
        State& state = state_of(request.state);
        for (size_t i = 0; i < parts_.size(); ++i) {
            lend(state, i);
            parts_[i].drafter->prepare(request_of(request, i));
        }
    }
    TokenTree propose(const DraftRequest& request) override {
        TokenTree tree(request.tokens.back());
        TokenTree* const one = &tree;
        propose_all({&request, 1}, {&one, 1});
        return tree;
    }
    void propose_all(std::span<const DraftRequest> requests,
                     std::span<TokenTree* const> trees) override;
    void learn(const Verified& verified) override;

    CostAware* cost_aware() override { return this; }
    // Measured on the first head. The other heads are assumed to cost in proportion to the bytes of
    // their weights.
    double level_seconds(const DraftRequest& request, int width) override {
        const size_t i = measured();
        return parts_[i].costs->level_seconds(request_of(request, i), width);
    }
    int widest_level() const override { return parts_[measured()].costs->widest_level(); }
    void set_costs(const MeasuredCosts& costs) override;
    double cost_correction() const override {
        double most = 1;
        for (const Part& part : parts_) most = std::max(most, part.costs->cost_correction());
        return most;
    }
    void begin_round(const RoundShape& round) override {
        CostAware::begin_round(round);
        for (const Part& part : parts_) part.costs->begin_round(round);
    }
    void saw_pass(int rows, double seconds) override {
        CostAware::saw_pass(rows, seconds);
        for (const Part& part : parts_) part.costs->saw_pass(rows, seconds);
    }
    // Lookup keeps the account, and lends it to the head that drafts in its place.
    Account& account(DraftState& state) override {
        return parts_[0].costs->account(*state_of(state).parts[0]);
    }
    TreePlan planned(const DraftState&) const override { return {}; }

  private:
    struct Part {
        std::unique_ptr<Drafter> drafter;
        CostAware* costs;
        int first_column = 0;  // first column of this part in the observed features
        int columns = 0;
        double weight_bytes = 0;
    };
    struct State final : DraftState {
        explicit State(const Best& of) : drafter(of), choice(of.parts_.size()) {
            for (const Part& part : of.parts_) parts.push_back(part.drafter->begin());
        }
        State(const State& other, int positions)
            : drafter(other.drafter), choice(other.parts.size(), other.choice), trust(other.trust) {
            for (const auto& part : other.parts) parts.push_back(part->fork(positions));
        }

        int positions() const override {
            int least = INT_MAX;
            for (const auto& part : parts) least = std::min(least, part->positions());
            return least;
        }
        void truncate(int positions) override {
            if (positions == 0) {
                choice.begin_text();
                trust = {};
            }
            for (const auto& part : parts) part->truncate(positions);
        }
        std::unique_ptr<DraftState> fork(int positions) const override {
            return std::make_unique<State>(*this, positions);
        }
        void save(SaveSink& to) const override {
            for (const auto& part : parts) part->save(to);
        }
        void load(SaveSource& from) override {
            for (const auto& part : parts) part->load(from);
        }

        const Best& drafter;
        std::vector<std::unique_ptr<DraftState>> parts;
        DrafterChoice choice;
        Estimate trust;  // tokens that lookup brought, per expected token
        // The newest cycle, in which parts[asked] drafted.
        size_t asked = 0;
        double expected = 0;  // tokens expected from lookup, beyond the first
        double seconds = 0;   // time that drafting took
        double planned = 0;   // expected cost of the whole cycle, in plain cycles
    };

    static State& state_of(DraftState& state) { return static_cast<State&>(state); }
    DraftRequest request_of(DraftRequest request, size_t i) const {
        return {*state_of(request.state).parts[i],
                request.tokens,
                request.rules,
                request.temperature,
                request.noise,
                request.drawn};
    }
    TokenTree look_up(const DraftRequest& request);
    size_t measured() const { return parts_.size() > 1 ? 1 : 0; }
    // Among several heads DrafterChoice bounds what each may lose. A part of the account for all
    // of them would let one that fails keep the others from drafting.
    void lend(State& state, size_t i) {
        Account& own = parts_[i].costs->account(*state.parts[i]);
        own = account(state);
        own.head_balance = own.balance;
    }

    std::vector<Part> parts_;             // the first is lookup
    std::vector<DrafterRecord> records_;  // one for each part
    DraftReach reach_;
    Clock clock_;
    // Sequences that ask the same head, and their trees.
    std::vector<DraftRequest> asking_;
    std::vector<TokenTree*> asked_trees_;
};

Best::Best(const DraftSource& source)
    : reach_(reach_of(source.plan)), clock_(source.plan.options.clock) {
    DraftOptions options = source.plan.options;
    const auto add = [&](const DraftMethod& method, const DraftPlan& plan,
                         std::shared_ptr<const DraftWeights> weights) {
        Part part{method.make({source.backend, source.target, plan, std::move(weights)}), nullptr};
        part.costs = part.drafter->cost_aware();
        parts_.push_back(std::move(part));
    };
    // Trees are sized by measurement: with a fixed shape lookup would have no policy, hence no
    // account.
    options.tree.reset();
    const DraftPlan& plan = source.plan;
    DraftPlan lookup{.options = options, .target = plan.target};
    lookup.weights = plan.weights;
    lookup.lm_head_type = plan.lm_head_type;
    lookup.kv = plan.kv;
    lookup.context = plan.context;
    lookup.pass_rows = plan.pass_rows;
    lookup.sequences = plan.sequences;
    lookup.together = plan.together;
    add(draft_method("lookup"), lookup, nullptr);
    const auto weights = std::static_pointer_cast<const PartWeights>(source.weights);
    int columns = 0;
    for (const DraftPlan& head : head_plans(plan)) {
        const size_t i = parts_.size() - 1;
        add(part_method(), head, weights->parts[i]);
        Part& part = parts_.back();
        part.first_column = columns;
        part.columns = int(part.drafter->reach().taps.size()) * source.target.config().hidden;
        columns += part.columns;
        part.weight_bytes = double(part_method().bytes(head).weights);
    }
    records_.resize(parts_.size());
    asking_.reserve(size_t(plan.together));
    asked_trees_.reserve(size_t(plan.together));
}

// Shows each part the positions that it has not observed yet.
void Best::observe(const Observed& observed) {
    State& state = state_of(observed.state);
    for (size_t i = 1; i < parts_.size(); ++i) {
        const int rows = observed.features.rows;
        const int known = std::min(state.parts[i]->positions() - observed.first, rows);
        const int skip = std::max(0, known);
        if (skip == rows) continue;
        const Tensor features = observed.features.row_range(skip, rows - skip)
                                    .col_range(parts_[i].first_column, parts_[i].columns);
        parts_[i].drafter->observe({*state.parts[i], observed.tokens, observed.first + skip,
                                    features, observed.is_prompt});
    }
}

// Lookup proposes first, by itself. The head that is asked in its place proposes for all sequences
// that ask it.
void Best::propose_all(std::span<const DraftRequest> requests, std::span<TokenTree* const> trees) {
    for (size_t i = 0; i < requests.size(); ++i) *trees[i] = look_up(requests[i]);
    for (size_t part = 1; part < parts_.size(); ++part) {
        asking_.clear();
        asked_trees_.clear();
        for (size_t i = 0; i < requests.size(); ++i) {
            if (state_of(requests[i].state).asked != part) continue;
            asking_.push_back(request_of(requests[i], part));
            asked_trees_.push_back(trees[i]);
        }
        if (asking_.empty()) continue;
        const double start = clock_();
        parts_[part].drafter->propose_all(asking_, asked_trees_);
        const double seconds = clock_() - start;
        for (const DraftRequest& request : requests)
            if (State& state = state_of(request.state); state.asked == part)
                state.seconds += seconds;
    }
    for (const DraftRequest& request : requests) {
        State& state = state_of(request.state);
        state.planned = parts_[state.asked].costs->planned(*state.parts[state.asked]).cost;
    }
}

// Lookup's proposal, and which part is asked instead of it.
TokenTree Best::look_up(const DraftRequest& request) {
    State& state = state_of(request.state);
    const double start = clock_();
    TokenTree tree = parts_[0].drafter->propose(request_of(request, 0));
    const TreePlan plan = parts_[0].costs->planned(*state.parts[0]);
    const double trust = state.trust.mean(1, kTrustWeight), rate = account(state).rate;
    state.expected = tree.size() > 1 ? plan.tokens - 1 : 0;
    const double of_lookup =
        tree.size() > 1 ? 1 + trust * state.expected - rate * plan.cost : 1 - rate;
    state.asked = state.choice.next(records_, of_lookup, rate, cycle_kind(state.expected));
    if (state.asked > 0) lend(state, state.asked);
    state.seconds = clock_() - start;
    return tree;
}

void Best::learn(const Verified& verified) {
    State& state = state_of(verified.state);
    const size_t i = state.asked;
    costs_->saw_verify(verified.tree.size(), verified.seconds);
    parts_[i].drafter->learn({*state.parts[i], verified.tree, verified.choices, verified.accepted,
                              verified.next, verified.seconds});
    account(state) = parts_[i].costs->account(*state.parts[i]);
    const double tokens = double(verified.accepted.size());
    if (i == 0) {
        if (state.expected > 0) state.trust.add(tokens - 1, state.expected, kTrustMemory);
        return;
    }
    const bool is_timed = !costs_->is_frozen() && verified.seconds > 0;
    const double cost = is_timed ? costs_->of(state.seconds + verified.seconds) : state.planned;
    state.choice.learn(records_[i], cycle_kind(state.expected), tokens, cost);
}

void Best::set_costs(const MeasuredCosts& costs) {
    CostAware::set_costs(costs);
    for (size_t i = 0; i < parts_.size(); ++i) {
        MeasuredCosts own = costs;
        const double bytes = parts_[measured()].weight_bytes;
        const double factor = i == 0 || bytes == 0 ? 1 : parts_[i].weight_bytes / bytes;
        for (CostPoint& point : own.level) point.seconds *= factor;
        // Lookup runs no head, so a level of it costs next to nothing.
        if (i == 0 && parts_.size() > 1)
            own.level = {{1, costs.verify.empty() ? 0 : costs.verify[0].seconds / 1000}};
        parts_[i].costs->set_costs(own);
    }
}

}  // namespace

DraftMethod best_method() {
    DraftMethod method;
    method.name = "best";
    method.has_published = false;
    method.help =
        "in each cycle what pays most of lookup and the grafted trees of all heads and smaller "
        "models that there are";
    method.needs = DraftNeeds::what_there_is;
    method.reach = Best::reach_of;
    method.check = [](const DraftPlan& plan) {
        for (const DraftPlan& head : head_plans(plan)) part_method().check(head);
    };
    method.limits = [](const DraftPlan& plan) {
        Limits limits;
        for (const DraftPlan& head : head_plans(plan))
            limits = largest(limits, part_method().limits(head));
        return limits;
    };
    method.bytes = [](const DraftPlan& plan) {
        DraftBytes all;
        for (const DraftPlan& head : head_plans(plan)) {
            const DraftBytes part = part_method().bytes(head);
            for (const auto& [type, bytes] : part.types) all.types[type] += bytes;
            all.weights += part.weights;
            all.scratch += part.scratch;
        }
        return all;
    };
    method.host_bytes = [](const DraftPlan& plan) {
        size_t all = draft_method("lookup").host_bytes(plan);
        for (const DraftPlan& head : head_plans(plan)) all += part_method().host_bytes(head);
        return all;
    };
    method.weights = "all heads";
    method.load = [](const DraftSource& source) -> std::shared_ptr<const DraftWeights> {
        auto weights = std::make_shared<PartWeights>();
        for (const DraftPlan& head : head_plans(source.plan))
            weights->parts.push_back(
                part_method().load({source.backend, source.target, head, nullptr}));
        return weights;
    };
    method.make = [](const DraftSource& source) -> std::unique_ptr<Drafter> {
        const std::vector<DraftPlan> heads = head_plans(source.plan);
        if (heads.size() != 1) return std::make_unique<Best>(source);
        const auto& weights = static_cast<const PartWeights&>(*source.weights);
        return part_method().make(
            {source.backend, source.target, heads.front(), weights.parts.front()});
    };
    return method;
}

}  // namespace aerie
