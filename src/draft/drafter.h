// The engine's view of a drafter: it observes the text and the target's features, and proposes a
// tree. A drafter holds weights and device buffers; everything that belongs to one sequence is in
// its DraftState.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

#include "backend/backend.h"
#include "core/saved.h"
#include "draft/trees/account.h"
#include "draft/trees/cycle_costs.h"
#include "draft/trees/drawn.h"
#include "draft/trees/noise_rows.h"
#include "draft/trees/tree.h"
#include "model/target.h"

namespace aerie {

// How far proposals can reach; the engine sizes its buffers by it.
struct DraftReach {
    int nodes = 1;  // most nodes of a proposal, root included
    int depth = 0;  // largest depth of a node
    Taps taps;      // hidden states that the drafter wants to observe
};

// The state that a drafter keeps for one sequence.
class DraftState {
  public:
    virtual ~DraftState() = default;
    // Number of positions observed so far; observe() continues here. INT_MAX if the drafter needs
    // no features.
    virtual int positions() const = 0;
    // Cuts the sequence to its first `positions` tokens, after which it may go on with others; 0
    // begins another text.
    virtual void truncate(int positions) = 0;
    // A state for another sequence that begins with the same `positions` tokens. It may know fewer
    // of them.
    virtual std::unique_ptr<DraftState> fork(int positions) const = 0;
    // Save the state to a file, and load it into the state of a new sequence from a file that the
    // same drafter wrote. Throw Error.
    virtual void save(SaveSink& to) const = 0;
    virtual void load(SaveSource& from) = 0;
};

// The target's features of the positions first, first + 1, ... of a sequence, in order and without
// gaps.
struct Observed {
    DraftState& state;
    std::span<const int> tokens;  // the known text, at least one token longer than these positions
    int first;
    Tensor features;         // [positions, taps * hidden]
    bool is_prompt = false;  // whether this is part of a prompt; prepare() follows the last part
};

// The inputs of a proposal. Except with drawn drafts, the output never depends on it
// (architecture.md, idea 3).
struct DraftRequest {
    DraftState& state;
    std::span<const int> tokens;  // all tokens; the last one is the root
    Rules rules = {};             // the target's rules, one row
    float temperature = 0;        // the target's temperature
    NoiseRows* noise = nullptr;   // null at temperature 0
    Drawn* drawn = nullptr;       // null at temperature 0; filled by a drafter that draws
};

// The result of verifying the newest proposal.
struct Verified {
    DraftState& state;
    const TokenTree& tree;
    std::span<const int> choices;   // the target's choice after each node
    std::span<const int> accepted;  // accepted nodes, the root first
    int next;                       // the target's choice after the last accepted node
    double seconds;  // time of the target's pass and its choices; 0: other sequences shared it
};

// The part of a drafter that sizes its trees by measured costs.
class CostAware {
  public:
    virtual ~CostAware() = default;
    // Runs one level of `width` rows, at most widest_level(), below the observed text, and returns
    // its time.
    virtual double level_seconds(const DraftRequest& request, int width) = 0;
    virtual int widest_level() const = 0;
    virtual void set_costs(const MeasuredCosts& costs) { *costs_ = CycleCosts(costs); }
    // The largest factor by which the cycles' own timings have corrected the costs:
    // CycleCosts::correction().
    virtual double cost_correction() const { return costs_->correction(); }
    // The cost of a target pass over `rows` rows, in passes over one row.
    double pass_cost(int rows) const { return costs_->verify(rows); }
    // To be called before the proposals of a round, and after a pass that several sequences shared.
    virtual void begin_round(const RoundShape& round) { costs_->begin_round(round); }
    virtual void saw_pass(int rows, double seconds) { costs_->saw_shared_pass(rows, seconds); }
    // The account of a sequence. A drafter made of several copies it into the one that drafts next.
    virtual Account& account(DraftState& state) = 0;
    // The expected tokens and cost of the newest proposal for this sequence.
    virtual TreePlan planned(const DraftState& state) const = 0;

  protected:
    // Costs belong to the device: all sequences share them.
    const std::shared_ptr<CycleCosts> costs_ = std::make_shared<CycleCosts>();
};

// Weights on a device, shared by all drafters that use them.
class DraftWeights {
  public:
    virtual ~DraftWeights() = default;
    // No other weights of this process have this number; keys of recordings contain it.
    uint64_t number() const { return number_; }

  private:
    static uint64_t next_number() {
        static std::atomic<uint64_t> last{0};
        return ++last;
    }
    const uint64_t number_ = next_number();
};

class Drafter {
  public:
    virtual ~Drafter() = default;
    // Drafts with the weights of another head of the same shape from now on (Model::load_head);
    // null: with the head that the drafter was made for. Drafters without a head ignore it.
    virtual void use_head(const std::shared_ptr<const DraftWeights>& weights) { (void)weights; }
    virtual DraftReach reach() const = 0;
    // The state of a new sequence. Throws Error if there are more sequences than were planned for.
    virtual std::unique_ptr<DraftState> begin() = 0;

    virtual void observe(const Observed& observed) = 0;
    // Called when the whole prompt has been observed: computes beforehand what the first proposal
    // needs.
    virtual void prepare(const DraftRequest& request) { (void)request; }
    virtual TokenTree propose(const DraftRequest& request) = 0;
    // The proposals of several sequences, which a drafter may make in the same passes: *trees[i] is
    // for requests[i].
    virtual void propose_all(std::span<const DraftRequest> requests,
                             std::span<TokenTree* const> trees) {
        for (size_t i = 0; i < requests.size(); ++i) *trees[i] = propose(requests[i]);
    }
    virtual void learn(const Verified& verified) { (void)verified; }
    virtual CostAware* cost_aware() { return nullptr; }
};

}  // namespace aerie
