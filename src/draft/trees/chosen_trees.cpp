// Trees that are sized by measurement: after each level a TreePolicy decides how to go on, and
// learns from the time that the level took.
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "draft/ngram/continuations.h"
#include "draft/trees/tree_drafter.h"
#include "draft/trees/tree_policy.h"

namespace aerie {

namespace {

// A stopwatch: each lap begins where the last one ended.
class Laps {
  public:
    explicit Laps(const Clock& clock) : clock_(clock), start_(clock()) {}
    double lap_seconds() {
        const double now = clock_();
        const double seconds = now - start_;
        start_ = now;
        return seconds;
    }

  private:
    const Clock& clock_;
    double start_;
};

class ChosenTrees final : public TreeDrafter, CostAware {
  public:
    ChosenTrees(const DraftSource& source, const TreeShape& most, bool has_grafts, Parts parts)
        : TreeDrafter(source, std::move(parts)),
          most_(most),
          context_(has_grafts ? source.plan.context : 0),
          clock_(source.plan.options.clock) {
        grafted_.reserve(size_t(most.top_k) * size_t(1 + (most.levels - 1) * most.top_k) +
                         size_t(kMaxGrafts));
    }

    DraftReach reach() const override {
        DraftReach reach = TreeDrafter::reach();
        if (context_ > 0) reach.depth = std::max(reach.depth, kGraftDepth);
        return reach;
    }

    void prepare(const DraftRequest& request) override {
        if (context_ > 0)
            static_cast<ChosenState&>(request.state)
                .said->follow(request.tokens, Continuations::Reads::prompt);
        if (policy_of(request.state).would_draft(1)) catch_up(request);
    }

    TokenTree propose(const DraftRequest& request) override {
        TreePolicy& policy = policy_of(request.state);
        const double start = context_ > 0 ? clock_() : 0;
        find_grafts(request);
        const double finding = context_ > 0 ? policy.costs().of(clock_() - start) : 0;
        const int missed = to_read(request, kWindow);
        // Positions beyond the window are not charged to this cycle: a language model that reads
        // them serves the whole rest of the text.
        if (!policy.begin(std::min(missed, kWindow))) return grafts_alone(policy, finding, request);
        policy.spend(finding);
        const std::span<const Candidate> table = grow_timed(policy, missed, request);
        if (request.noise) static_cast<State&>(request.state).softness.ranked(table);
        const std::span<const Candidate> all = with_grafts(policy, table);
        return tree_of(all, policy.kept(), request.tokens.back());
    }

    void learn(const Verified& verified) override {
        TreePolicy& policy = policy_of(verified.state);
        policy.costs().saw_verify(verified.tree.size(), verified.seconds);
        policy.learn(verified.tree, verified.accepted, verified.next);
        static_cast<State&>(verified.state).softness.learn(verified);
    }

    CostAware* cost_aware() override { return this; }
    double level_seconds(const DraftRequest& request, int width) override {
        catch_up(request, kWindow);
        Laps laps(clock_);
        double seconds = 0;  // time of the level below the root
        const auto choose = [&](std::span<const Candidate> table, int first, Frontier& frontier) {
            if (first == 0) best_frontier(table, first, width, frontier);
            seconds = laps.lap_seconds();
        };
        grow(std::ref(choose), most_.top_k, request);
        return seconds;
    }
    int widest_level() const override { return most_.top_k; }
    void set_costs(const MeasuredCosts& costs) override { *costs_ = CycleCosts(costs); }
    double cost_correction() const override { return costs_->correction(); }
    double pass_cost(int rows) const override { return costs_->verify(rows); }
    Account& account(DraftState& state) override { return policy_of(state).account(); }
    TreePlan planned(const DraftState& state) const override {
        return static_cast<const ChosenState&>(state).policy.planned();
    }

  private:
    static constexpr int kMaxGrafts = 24;
    static constexpr double kMinGraft = 0.02;

    // Grows a tree as the policy wants it, and tells the policy how long each level took. `missed`:
    // positions that the model reads before the root's candidates.
    std::span<const Candidate> grow_timed(TreePolicy& policy, int missed,
                                          const DraftRequest& request) {
        Laps laps(clock_);
        int running = 0;  // rows of the level that runs; 0: the root alone
        const auto choose = [&](std::span<const Candidate> table, int first, Frontier& frontier) {
            const double seconds = laps.lap_seconds();
            if (running == 0)
                policy.costs().saw_root(missed, seconds);
            else
                policy.costs().saw_level(running, seconds);
            policy.choose(table, first, frontier);
            running = int(frontier.size());
            laps.lap_seconds();
        };
        catch_up(request, kWindow);
        return grow(std::ref(choose), most_.top_k, request);
    }

    void find_grafts(const DraftRequest& request) {
        grafts_.clear();
        if (context_ == 0) return;
        Continuations& said = *static_cast<ChosenState&>(request.state).said;
        said.follow(request.tokens, Continuations::Reads::answer);
        said.likeliest(std::min(kMaxGrafts, most_.nodes - 1), kGraftDepth, most_.top_k, kMinGraft,
                       grafts_);
    }

    // Appends the grafts that the head did not draft to the table. Grafts that it drafted, too,
    // only raise the probability of its entries.
    std::span<const Candidate> with_grafts(TreePolicy& policy, std::span<const Candidate> table) {
        if (grafts_.empty()) return table;
        grafted_.assign(table.begin(), table.end());
        NodeList entries;
        for (const Continuation& graft : grafts_) {
            const int parent = graft.parent < 0 ? -1 : entries[size_t(graft.parent)];
            const int before = policy.entries();
            const int entry = policy.graft(parent, graft.token, conditional_of(grafts_, graft));
            entries.push_back(entry);
            if (entry < before) continue;
            const float value = std::log(graft.probability);
            grafted_.push_back({graft.token, parent, value, value});
        }
        policy.end_grafts();
        return grafted_;
    }

    TokenTree grafts_alone(TreePolicy& policy, double finding, const DraftRequest& request) {
        // Proposes a tree of grafts without running the head.
        if (grafts_.empty() || !policy.begin_grafts(finding))
            return TokenTree(request.tokens.back());
        const std::span<const Candidate> table = with_grafts(policy, {});
        return tree_of(table, policy.kept(), request.tokens.back());
    }

    // Acceptance statistics belong to a sequence; costs belong to the device and are shared.
    struct ChosenState final : State {
        ChosenState(const ChosenTrees& of, KvPages held)
            : State(of, std::move(held)), policy(of.most_, of.costs_, of.context_ > 0) {
            if (of.context_ > 0) said.emplace(of.context_);
        }

        void truncate(int positions) override {
            if (positions == 0) policy.begin_text();
            if (said) said->truncate(positions);
            State::truncate(positions);
        }
        void save(SaveSink& to) const override {
            State::save(to);
            policy.save(to);
            if (said) said->save(to);
        }
        void load(SaveSource& from) override {
            State::load(from);
            policy.load(from);
            if (said) said->load(from);
        }

        TreePolicy policy;
        std::optional<Continuations> said;  // absent without grafts
    };

    static TreePolicy& policy_of(DraftState& state) {
        return static_cast<ChosenState&>(state).policy;
    }

    std::unique_ptr<State> make_state(KvPages pages, const State* like) const override {
        auto state = std::make_unique<ChosenState>(*this, std::move(pages));
        if (!like) return state;
        const auto& other = static_cast<const ChosenState&>(*like);
        state->policy = other.policy;
        if (other.said) state->said->learn_like(*other.said);
        return state;
    }
    bool reads_prompt(const State& state) const override {
        return static_cast<const ChosenState&>(state).policy.would_draft(1);
    }

    TreeShape most_;
    int context_;  // most positions of a sequence searched for grafts; 0: no grafts
    Clock clock_;
    ContinuationList grafts_;         // grafts of the newest proposal
    std::vector<Candidate> grafted_;  // the head's table with the grafts appended
    std::shared_ptr<CycleCosts> costs_ = std::make_shared<CycleCosts>();
};

}  // namespace

std::unique_ptr<Drafter> make_chosen_trees(const DraftSource& source, TreeDrafter::Parts parts) {
    const TreeShape most = parts.growth.shape;
    const bool has_grafts = parts.growth.has_grafts;
    return std::make_unique<ChosenTrees>(source, most, has_grafts, std::move(parts));
}

}  // namespace aerie
