// Trees chosen by measurement: a TreePolicy decides after each level, on the clock.
#include <algorithm>

#include "draft/grown.h"
#include "draft/tree_policy.h"

namespace aerie {

namespace {

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

// Runs one level of the given width below the root, and takes its time.
class OneLevel final : public FrontierPolicy {
  public:
    OneLevel(const Clock& clock, int width) : laps_(clock), width_(width) {}
    double seconds = 0;

    void choose(std::span<const Candidate> table, int first, Frontier& frontier) override {
        if (first > 0) {
            seconds = laps_.lap_seconds();
            return;
        }
        best_frontier(table, first, width_, frontier);
        laps_.lap_seconds();
    }

  private:
    Laps laps_;
    int width_;
};

// Tells the policy what each level took.
class TimedPolicy final : public FrontierPolicy {
  public:
    TimedPolicy(TreePolicy& policy, const Clock& clock, int backlog)
        : policy_(policy), laps_(clock), backlog_(backlog) {}

    void choose(std::span<const Candidate> table, int first, Frontier& frontier) override {
        const double seconds = laps_.lap_seconds();
        if (running_ == 0)
            policy_.costs().saw_root(backlog_, seconds);
        else
            policy_.costs().saw_level(running_, seconds);
        policy_.choose(table, first, frontier);
        running_ = int(frontier.size());
        laps_.lap_seconds();
    }

  private:
    TreePolicy& policy_;
    Laps laps_;
    int backlog_;      // positions that the model reads before the root's level
    int running_ = 0;  // rows of the level that is run; 0: the root's
};

class ChosenTrees final : public GrownDrafter, CostAware {
  public:
    ChosenTrees(const DraftSource& source, const TreeShape& most, Parts parts)
        : GrownDrafter(source, std::move(parts)), most_(most), clock_(source.plan.options.clock) {}

    void prepare(const DraftRequest& request) override {
        if (policy_of(request.state).would_draft(1)) catch_up(request);
    }

    TokenTree propose(const DraftRequest& request) override {
        TreePolicy& policy = policy_of(request.state);
        const int missed = to_read(request, kWindow);
        // A long read of a language model is an investment into the whole rest of the text.
        if (!policy.begin(std::min(missed, kWindow))) return TokenTree(request.tokens.back());
        TimedPolicy timed(policy, clock_, missed);
        catch_up(request, kWindow);
        const std::span<const Candidate> table = grow(timed, most_.top_k, request);
        if (request.noise) static_cast<State&>(request.state).softness.ranked(table);
        return tree_of(table, policy.kept(), request.tokens.back());
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
        OneLevel level(clock_, width);
        grow(level, most_.top_k, request);
        return level.seconds;
    }
    int widest_level() const override { return most_.top_k; }
    void set_costs(const MeasuredCosts& costs) override { *costs_ = CycleCosts(costs); }
    double cost_correction() const override { return costs_->correction(); }

  private:
    // What is known of a text's acceptance goes with the text; what things cost is the device's.
    struct ChosenState final : State {
        ChosenState(const ChosenTrees& of, KvPages held)
            : State(of, std::move(held)), policy(of.most_, of.costs_) {}

        void truncate(int positions) override {
            if (positions == 0) policy.begin_text();
            State::truncate(positions);
        }
        void save(SaveSink& to) const override {
            State::save(to);
            policy.save(to);
        }
        void load(SaveSource& from) override {
            State::load(from);
            policy.load(from);
        }

        TreePolicy policy;
    };

    static TreePolicy& policy_of(DraftState& state) {
        return static_cast<ChosenState&>(state).policy;
    }

    std::unique_ptr<State> make_state(KvPages pages, const State* like) const override {
        auto state = std::make_unique<ChosenState>(*this, std::move(pages));
        if (like) state->policy = static_cast<const ChosenState*>(like)->policy;
        return state;
    }
    bool reads_prompt(const State& state) const override {
        return static_cast<const ChosenState&>(state).policy.would_draft(1);
    }

    TreeShape most_;
    Clock clock_;
    std::shared_ptr<CycleCosts> costs_ = std::make_shared<CycleCosts>();
};

}  // namespace

std::unique_ptr<Drafter> make_chosen_trees(const DraftSource& source, GrownDrafter::Parts parts) {
    const TreeShape most = parts.growth.shape;
    return std::make_unique<ChosenTrees>(source, most, std::move(parts));
}

}  // namespace aerie
