// Picks in each cycle among the drafters that are there: prompt lookup, and the grafted trees of
// each head and draft model. A cycle is worth its tokens less its time at the rate that decoding
// reaches (as in TreePolicy): of lookup that is known beforehand, of the others from their newest
// cycles. All of them share one account, so no text gets slower than plain decoding by more than
// one drafter may make it.
#include <algorithm>
#include <climits>

#include "draft/methods.h"
#include "draft/tree_policy.h"

namespace aerie {

namespace {

constexpr double kTextMemory = 0.95, kLongMemory = 0.995;
constexpr double kTextWeight = 30;  // tokens, and cycles, that all texts before count for in one
constexpr double kFirstTokens = 2, kFirstCost = 1.2, kFirstWeight = 2;  // of who was never asked
constexpr double kKnown = 6;              // cycles after which somebody's worth is known
constexpr double kStay = 0.05;            // tokens a cycle that another one must be better
constexpr double kProbeShare = 1.0 / 48;  // tokens a cycle that may be lost by asking others
constexpr double kUnknownLoss = 0.4;      // by a cycle of somebody who is not known
constexpr int kProbeCycles = 4;           // in a row; the first one catches up
constexpr int kIdleCycles = 48;           // that somebody known is not asked, at least
constexpr double kTrustMemory = 0.97, kTrustWeight = 8;

// What cycles put out and took, in plain cycles.
struct Record {
    Estimate tokens, cost;

    void add(double brought, double took, double memory) {
        tokens.add(brought, 1, memory);
        cost.add(took, 1, memory);
    }
};

// Heads bring more where lookup has guesses, which are grafted: kinds of cycles by the tokens that
// lookup is expected to bring.
constexpr int kKinds = 3;
int kind_of(double expected) {
    return expected < 0.3 ? 0 : expected < 1.5 ? 1 : 2;
}

// Of the cycles of one text, per what was to be expected.
struct Factors {
    Estimate tokens, cost;
};

const DraftMethod& part_method() {
    return draft_method("grafted");
}

// The plan of each head that there is.
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

class Auto final : public Drafter, CostAware {
  public:
    explicit Auto(const DraftSource& source);

    static DraftReach reach_of(const DraftPlan& plan) {
        DraftReach reach{kMostAuto.nodes, kMostAuto.levels, {}};
        for (const DraftPlan& head : head_plans(plan)) {
            const DraftReach part = part_method().reach(head);
            reach.nodes = std::max(reach.nodes, part.nodes);
            reach.depth = std::max(reach.depth, part.depth);
            reach.taps.insert(reach.taps.end(), part.taps.begin(), part.taps.end());
        }
        return reach;
    }

    DraftReach reach() const override { return reach_; }
    std::unique_ptr<DraftState> begin() override { return std::make_unique<State>(*this); }
    void observe(const Observed& observed) override;
    void prepare(const DraftRequest& request) override {
        State& state = state_of(request.state);
        for (size_t i = 0; i < parts_.size(); ++i) {
            lend(state, i);
            parts_[i].drafter->prepare(request_of(request, i));
        }
    }
    TokenTree propose(const DraftRequest& request) override;
    void learn(const Verified& verified) override;

    CostAware* cost_aware() override { return this; }
    // Of the first head; the others' are taken to cost as much more as they have more weights.
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
    Account& account(DraftState& state) override { return state_of(state).account; }
    TreePlan planned(const DraftState&) const override { return {}; }

  private:
    struct Part {
        std::unique_ptr<Drafter> drafter;
        CostAware* costs;
        int first_column = 0;  // of its features
        int columns = 0;
        double weight_bytes = 0;
        Record records[kKinds] = {};  // of all texts
        Record all = {};              // of all kinds together

        bool is_known() const { return all.tokens.weight >= kKnown; }
        // Of a cycle, in any text.
        double tokens(int kind) const {
            return records[kind].tokens.mean(all.tokens.mean(kFirstTokens, kFirstWeight),
                                             kFirstWeight);
        }
        double cost(int kind) const {
            return records[kind].cost.mean(all.cost.mean(kFirstCost, kFirstWeight), kFirstWeight);
        }
    };
    struct State final : DraftState {
        explicit State(const Auto& of) : drafter(of), factors(of.parts_.size()) {
            for (const Part& part : of.parts_) parts.push_back(part.drafter->begin());
            idle.resize(parts.size());
        }
        State(const State& other, int positions)
            : drafter(other.drafter), account(other.account), factors(other.factors) {
            for (const auto& part : other.parts) parts.push_back(part->fork(positions));
            idle.resize(parts.size());
        }

        int positions() const override {
            int least = INT_MAX;
            for (const auto& part : parts) least = std::min(least, part->positions());
            return least;
        }
        void truncate(int positions) override {
            if (positions == 0) {
                account.begin_text();
                factors.assign(factors.size(), {});
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

        const Auto& drafter;
        std::vector<std::unique_ptr<DraftState>> parts;
        Account account;
        std::vector<Factors> factors;  // of this text
        Estimate trust;                // tokens that lookup brought, per expected one
        std::vector<int> idle;         // cycles since each was asked
        double allowance = 0;          // for probes
        // The newest cycle.
        size_t asked = 0, stays = 1;  // `stays`: the head that is asked where one is
        bool catches_up = false;
        size_t probe = 0;  // who is asked beside it, for so many further cycles
        int probing = 0;
        double expected = 0;  // tokens of lookup's, beyond the first
        double seconds = 0;   // that drafting took
        double planned = 0;   // what the cycle costs, by whoever was asked
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
    size_t measured() const { return parts_.size() > 1 ? 1 : 0; }
    void lend(State& state, size_t i) const {
        parts_[i].costs->account(*state.parts[i]) = state.account;
    }
    double worth(const State& state, size_t i, int kind) const;
    size_t pick(State& state, double of_lookup, int kind);

    std::vector<Part> parts_;  // lookup is the first
    DraftReach reach_;
    Clock clock_;
    CycleCosts costs_;
};

Auto::Auto(const DraftSource& source)
    : reach_(reach_of(source.plan)), clock_(source.plan.options.clock) {
    DraftOptions options = source.plan.options;
    const auto add = [&](const DraftMethod& method, const DraftPlan& plan,
                         std::shared_ptr<const DraftWeights> weights) {
        Part part{method.make({source.backend, source.target, plan, std::move(weights)}), nullptr};
        part.costs = part.drafter->cost_aware();
        parts_.push_back(std::move(part));
    };
    // As large as it pays: otherwise nobody would keep its account.
    options.tree.reset();
    const DraftPlan& plan = source.plan;
    const DraftPlan lookup{options,      plan.target,    nullptr,           nullptr,
                           {},           plan.weights,   plan.lm_head_type, plan.kv,
                           plan.context, plan.pass_rows, plan.texts,        {}};
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
}

// A part is shown what it does not know yet.
void Auto::observe(const Observed& observed) {
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

// Of a cycle of this kind with this part.
double Auto::worth(const State& state, size_t i, int kind) const {
    const Factors& here = state.factors[i];
    return parts_[i].tokens(kind) * here.tokens.mean(1, kTextWeight) -
           state.account.rate * parts_[i].cost(kind) * here.cost.mean(1, kTextWeight);
}

// Who is asked; 0: what lookup has proposed already is worth most.
size_t Auto::pick(State& state, double of_lookup, int kind) {
    if (parts_.size() == 1) return 0;
    for (int& cycles : state.idle) ++cycles;
    state.allowance = std::min(2.0, state.allowance + kProbeShare);
    if (state.probing > 0) {
        --state.probing;
        return state.probe;
    }
    for (size_t i = 1; i < parts_.size(); ++i)
        if (parts_[i].is_known() && worth(state, i, kind) > worth(state, state.stays, kind) + kStay)
            state.stays = i;
    const double of_head = worth(state, state.stays, kind);
    const size_t best = of_head > of_lookup ? state.stays : 0;
    // Who is not known, or has long not been asked, is asked as often as that may cost.
    for (size_t i = 1; i < parts_.size(); ++i) {
        if (i == state.stays || (parts_[i].is_known() && state.idle[i] < kIdleCycles)) continue;
        const double loss = parts_[i].is_known()
                                ? std::max(of_head, of_lookup) - worth(state, i, kind)
                                : kUnknownLoss;
        if (kProbeCycles * loss > state.allowance) continue;
        state.allowance -= std::max(0.0, kProbeCycles * loss);
        state.probe = i;
        state.probing = kProbeCycles - 1;
        return i;
    }
    return best;
}

TokenTree Auto::propose(const DraftRequest& request) {
    State& state = state_of(request.state);
    const double start = clock_();
    lend(state, 0);
    TokenTree tree = parts_[0].drafter->propose(request_of(request, 0));
    const TreePlan plan = parts_[0].costs->planned(*state.parts[0]);
    const double trust = state.trust.mean(1, kTrustWeight);
    state.expected = tree.size() > 1 ? plan.tokens - 1 : 0;
    const double of_lookup = tree.size() > 1
                                 ? 1 + trust * state.expected - state.account.rate * plan.cost
                                 : 1 - state.account.rate;
    state.asked = pick(state, of_lookup, kind_of(state.expected));
    if (state.asked > 0) {
        state.catches_up = state.idle[state.asked] > 2;
        state.idle[state.asked] = 0;
        lend(state, state.asked);
        tree = parts_[state.asked].drafter->propose(request_of(request, state.asked));
    }
    state.seconds = clock_() - start;
    state.planned = parts_[state.asked].costs->planned(*state.parts[state.asked]).cost;
    return tree;
}

void Auto::learn(const Verified& verified) {
    State& state = state_of(verified.state);
    const size_t i = state.asked;
    costs_.saw_verify(verified.tree.size(), verified.seconds);
    parts_[i].drafter->learn({*state.parts[i], verified.tree, verified.choices, verified.accepted,
                              verified.next, verified.seconds});
    state.account = parts_[i].costs->account(*state.parts[i]);
    const double tokens = double(verified.accepted.size());
    if (i == 0) {
        if (state.expected > 0) {
            state.trust.sum = state.trust.sum * kTrustMemory + tokens - 1;
            state.trust.weight = state.trust.weight * kTrustMemory + state.expected;
        }
        return;
    }
    if (state.catches_up) return;  // what it cost tells nothing of the next ones
    Part& part = parts_[i];
    const int kind = kind_of(state.expected);
    const double cost =
        costs_.is_frozen() ? state.planned : costs_.of(state.seconds + verified.seconds);
    const auto add = [](Estimate& factor, double was, double expected) {
        factor.sum = factor.sum * kTextMemory + was;
        factor.weight = factor.weight * kTextMemory + expected;
    };
    add(state.factors[i].tokens, tokens, part.tokens(kind));
    add(state.factors[i].cost, cost, part.cost(kind));
    part.records[kind].add(tokens, cost, kLongMemory);
    part.all.add(tokens, cost, kLongMemory);
}

void Auto::set_costs(const MeasuredCosts& costs) {
    costs_ = CycleCosts(costs);
    for (size_t i = 0; i < parts_.size(); ++i) {
        MeasuredCosts own = costs;
        const double bytes = parts_[measured()].weight_bytes;
        const double factor = i == 0 || bytes == 0 ? 1 : parts_[i].weight_bytes / bytes;
        for (CostPoint& point : own.level) point.seconds *= factor;
        // Lookup takes none of a head's time.
        if (i == 0 && parts_.size() > 1)
            own.level = {{1, costs.verify.empty() ? 0 : costs.verify[0].seconds / 1000}};
        parts_[i].costs->set_costs(own);
    }
}

}  // namespace

DraftMethod auto_method() {
    DraftMethod method;
    method.name = "auto";
    method.help =
        "in each cycle what pays most of lookup and the grafted trees of all heads and smaller "
        "models that there are";
    method.needs = DraftNeeds::what_there_is;
    method.reach = Auto::reach_of;
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
    method.load = [](const DraftSource& source) -> std::shared_ptr<const DraftWeights> {
        auto weights = std::make_shared<PartWeights>();
        for (const DraftPlan& head : head_plans(source.plan))
            weights->parts.push_back(
                part_method().load({source.backend, source.target, head, nullptr}));
        return weights;
    };
    method.make = [](const DraftSource& source) { return std::make_unique<Auto>(source); };
    return method;
}

}  // namespace aerie
