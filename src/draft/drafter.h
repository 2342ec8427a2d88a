// What the engine knows of a drafter: it is shown the text and the target's true features, and
// proposes a tree. A drafter holds weights and device buffers; of a text only its state knows.
#pragma once

#include <memory>
#include <span>

#include "backend/backend.h"
#include "core/saved.h"
#include "draft/account.h"
#include "draft/cycle_costs.h"
#include "draft/drawn.h"
#include "draft/noise_rows.h"
#include "draft/tree.h"
#include "model/target.h"

namespace aerie {

// How far proposals can reach; the engine sizes its buffers by it.
struct DraftReach {
    int nodes = 1;  // of a proposal, root included
    int depth = 0;  // of its deepest node
    Taps taps;      // hidden states that the drafter wants to observe
};

// What a drafter keeps of one text.
class DraftState {
  public:
    virtual ~DraftState() = default;
    // Positions that it knows; those from here on are to be shown. INT_MAX: it needs to see none.
    virtual int positions() const = 0;
    // The text is cut to its first `positions` tokens, or goes on with others from there; 0: it is
    // a new one.
    virtual void truncate(int positions) = 0;
    // Of another text that begins with the same `positions` tokens. It may know less of them.
    virtual std::unique_ptr<DraftState> fork(int positions) const = 0;
    // To a file, and in the place of a new text's from one that the same drafter wrote. Throw
    // Error.
    virtual void save(SaveSink& to) const = 0;
    virtual void load(SaveSource& from) = 0;
};

// True features of the positions first, first + 1, ... of a text; in order and without gaps.
struct Observed {
    DraftState& state;
    std::span<const int> tokens;  // the whole text as far as it is known; one token at least
                                  // follows each of the positions
    int first;
    Tensor features;         // [positions, taps * hidden]
    bool is_prompt = false;  // a piece of a prompt; prepare follows the last one
};

// What a proposal may use. The output never depends on it (architecture.md, idea 3), but where
// drafts are drawn.
struct DraftRequest {
    DraftState& state;
    std::span<const int> tokens;  // the whole text; the last token is the root
    Rules rules = {};             // the target's, one row
    float temperature = 0;        // the target's
    NoiseRows* noise = nullptr;   // absent at temperature 0
    Drawn* drawn = nullptr;       // the same; filled by a drafter that draws
};

// What became of the newest proposal.
struct Verified {
    DraftState& state;
    const TokenTree& tree;
    std::span<const int> choices;   // the target's, after each node
    std::span<const int> accepted;  // nodes, the root first
    int next;                       // what the target chose after the last of them
    double seconds;                 // of the target's pass and its choices
};

// A drafter that chooses its trees by what they cost.
class CostAware {
  public:
    virtual ~CostAware() = default;
    // Runs a level of so many rows, at most widest_level(), over what was observed.
    virtual double level_seconds(const DraftRequest& request, int width) = 0;
    virtual int widest_level() const = 0;
    virtual void set_costs(const MeasuredCosts& costs) = 0;
    // How far the cycles' own timings have moved them: CycleCosts::correction().
    virtual double cost_correction() const = 0;
    // Of a text; who drafts together with others lends it theirs before a proposal.
    virtual Account& account(DraftState& state) = 0;
    // The newest proposal for this text.
    virtual TreePlan planned(const DraftState& state) const = 0;
};

class Drafter {
  public:
    virtual ~Drafter() = default;
    virtual DraftReach reach() const = 0;
    // Of a new text. Throws Error if there are more than were planned for.
    virtual std::unique_ptr<DraftState> begin() = 0;

    virtual void observe(const Observed& observed) = 0;
    // The prompt has been observed: what the first proposal needs of it may be computed now.
    virtual void prepare(const DraftRequest& request) { (void)request; }
    virtual TokenTree propose(const DraftRequest& request) = 0;
    virtual void learn(const Verified& verified) { (void)verified; }
    virtual CostAware* cost_aware() { return nullptr; }
};

}  // namespace aerie
