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
    ChosenTrees(const DraftSource& source, const Growth& growth, Parts parts)
        : TreeDrafter(source, std::move(parts)),
          most_(growth.shape),
          allowed_(growth.paths.empty() ? AllowedRanks() : AllowedRanks(growth.paths)),
          context_(growth.has_grafts ? source.plan.context : 0),
          clock_(source.plan.options.clock),
          proposals_(most_grown()) {
        grafted_.reserve(size_t(most_.top_k) * size_t(1 + (most_.levels - 1) * most_.top_k) +
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
        TokenTree tree(request.tokens.back());
        TokenTree* const one = &tree;
        propose_group({&request, 1}, {&one, 1});
        return tree;
    }

    void propose_all(std::span<const DraftRequest> requests,
                     std::span<TokenTree* const> trees) override {
        for (size_t first = 0; first < requests.size(); first += most_grown()) {
            const size_t count = std::min(most_grown(), requests.size() - first);
            propose_group(requests.subspan(first, count), trees.subspan(first, count));
        }
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
    Account& account(DraftState& state) override { return policy_of(state).account(); }
    TreePlan planned(const DraftState& state) const override {
        return static_cast<const ChosenState&>(state).policy.planned();
    }

  private:
    static constexpr int kMaxGrafts = 24;
    static constexpr double kMinGraft = 0.02;

    // Times the levels of trees that grow together. Each level ends with the choices of all trees
    // in it, which follow one another.
    class LevelTimer {
      public:
        LevelTimer(const Clock& clock, CycleCosts& costs, int missed)
            : laps_(clock), costs_(costs), rows_(missed) {}

        // To be called around the choice of a tree at its `level`: 0 below the root.
        void before(int level) {
            if (level < next_) return;
            next_ = level + 1;
            const double seconds = laps_.lap_seconds();
            if (level == 0)
                costs_.saw_root(rows_, seconds);
            else
                costs_.saw_level(rows_, seconds);
            rows_ = 0;
        }
        void after(size_t rows) {
            rows_ += int(rows);
            laps_.lap_seconds();
        }

      private:
        Laps laps_;
        CycleCosts& costs_;
        int next_ = 0;  // the level that ends next
        int rows_;      // rows of the level that runs, of all trees
    };

    // The proposal of a sequence beside others.
    struct Proposal {
        const DraftRequest* request = nullptr;
        TreePolicy* policy = nullptr;
        LevelTimer* timer = nullptr;
        TokenTree* tree = nullptr;
        int level = 0;
        ContinuationList grafts;

        void operator()(std::span<const Candidate> table, int first, Frontier& frontier) {
            timer->before(level++);
            policy->choose(table, first, frontier);
            timer->after(frontier.size());
        }
    };

    // Grows trees as the sequences' policies want them, each level of all of them in one pass.
    void propose_group(std::span<const DraftRequest> requests, std::span<TokenTree* const> trees) {
        int missed = 0;
        size_t growing = 0;
        for (size_t i = 0; i < requests.size(); ++i) {
            const DraftRequest& request = requests[i];
            Proposal& proposal = proposals_[growing];
            TreePolicy& policy = policy_of(request.state);
            const double start = context_ > 0 ? clock_() : 0;
            find_grafts(request, proposal.grafts);
            const double finding = context_ > 0 ? policy.costs().of(clock_() - start) : 0;
            // Positions beyond the window are not charged to this cycle: a language model that
            // reads them serves the whole rest of the text.
            const int own = to_read(request, kWindow);
            if (!policy.begin(std::min(own, kWindow))) {
                *trees[i] = grafts_alone(policy, finding, request, proposal.grafts);
                continue;
            }
            policy.spend(finding);
            missed += own;
            proposal.request = &request;
            proposal.policy = &policy;
            proposal.tree = trees[i];
            proposal.level = 0;
            ++growing;
        }
        if (growing == 0) return;
        LevelTimer timer(clock_, *costs_, missed);
        FixedVector<Wanted, kMostGrown> wanted;
        for (size_t i = 0; i < growing; ++i) {
            proposals_[i].timer = &timer;
            wanted.push_back({proposals_[i].request, std::ref(proposals_[i])});
        }
        grow_all(wanted, most_.top_k, kWindow);
        for (size_t i = 0; i < growing; ++i) {
            const Proposal& proposal = proposals_[i];
            const DraftRequest& request = *proposal.request;
            if (request.noise) static_cast<State&>(request.state).softness.ranked(table(i));
            const std::span<const Candidate> all =
                with_grafts(*proposal.policy, table(i), proposal.grafts);
            *proposal.tree = tree_of(all, proposal.policy->kept(), request.tokens.back());
        }
    }

    void find_grafts(const DraftRequest& request, ContinuationList& grafts) {
        grafts.clear();
        if (context_ == 0) return;
        Continuations& said = *static_cast<ChosenState&>(request.state).said;
        said.follow(request.tokens, Continuations::Reads::answer);
        said.likeliest(std::min(kMaxGrafts, most_.nodes - 1), kGraftDepth, most_.top_k, kMinGraft,
                       grafts);
    }

    // Appends the grafts that the head did not draft to the table. Grafts that it drafted, too,
    // only raise the probability of its entries.
    std::span<const Candidate> with_grafts(TreePolicy& policy, std::span<const Candidate> table,
                                           const ContinuationList& grafts) {
        if (grafts.empty()) return table;
        grafted_.assign(table.begin(), table.end());
        NodeList entries;
        for (const Continuation& graft : grafts) {
            const int parent = graft.parent < 0 ? -1 : entries[size_t(graft.parent)];
            const int before = policy.entries();
            const int entry = policy.graft(parent, graft.token, conditional_of(grafts, graft));
            entries.push_back(entry);
            if (entry < before) continue;
            const float value = std::log(graft.probability);
            grafted_.push_back({graft.token, parent, value, value});
        }
        policy.end_grafts();
        return grafted_;
    }

    // A tree of grafts without running the head.
    TokenTree grafts_alone(TreePolicy& policy, double finding, const DraftRequest& request,
                           const ContinuationList& grafts) {
        if (grafts.empty() || !policy.begin_grafts(finding))
            return TokenTree(request.tokens.back());
        const std::span<const Candidate> table = with_grafts(policy, {}, grafts);
        return tree_of(table, policy.kept(), request.tokens.back());
    }

    // Acceptance statistics belong to a sequence.
    struct ChosenState final : State {
        ChosenState(const ChosenTrees& of, KvPages held)
            : State(of, std::move(held)),
              policy(of.most_, of.allowed_, of.costs_, of.context_ > 0) {
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
    AllowedRanks allowed_;
    int context_;  // most positions of a sequence searched for grafts; 0: no grafts
    Clock clock_;
    std::vector<Proposal> proposals_;  // the proposals whose trees grow
    std::vector<Candidate> grafted_;   // the head's table with the grafts appended
};

}  // namespace

std::unique_ptr<Drafter> make_chosen_trees(const DraftSource& source, TreeDrafter::Parts parts) {
    const Growth growth = parts.growth;
    return std::make_unique<ChosenTrees>(source, growth, std::move(parts));
}

}  // namespace aerie
