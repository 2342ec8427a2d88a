// Times draft-and-verify cycles of EAGLE-2 with forced acceptance.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/model.h"
#include "measure/forced_acceptance.h"
#include "measure/timings.h"

namespace aerie {

// Results for one setting of the tree.
struct CycleTimes {
    std::string tree;  // "auto" or "60,6,10"
    int cycles = 0;
    double tau = 0;          // acceptance length
    double tree_nodes = 0;   // mean, root included
    double plain_share = 0;  // part of the cycles that had only a root
    // Mean times of a cycle and its parts, per round; `rest` is sampling and the host.
    Timings seconds, draft, verify, rest;
    Timings speedup;  // per round: over plain decoding
};

class CycleBench {
  public:
    struct Plan {
        std::optional<TreeShape> shape;  // unset: sized by measurement
        double round_seconds = 1;        // time for a round's cycles, of which at least three run
        std::vector<int> prompt;
    };
    // Throws Error.
    CycleBench(Model& model, ForcedAcceptance forced, const Plan& plan);
    CycleBench(const CycleBench&) = delete;  // the drafter calls back
    CycleBench& operator=(const CycleBench&) = delete;

    // Adds the time of one draft level: the extra time of a tree with several levels over one with
    // a single level, per level. Adds nothing if the shape is not given.
    void time_level(Timings& level);
    void warm_up();  // as many cycles as a round, so that a drafter can learn
    void round();    // some cycles
    // Adds the mean time of a token that was decoded plainly just before and after the last round.
    void compare(double plain_seconds) { plain_.push_back(plain_seconds); }
    CycleTimes times() const;

  private:
    Session& session() { return *drafting_.session; }
    void begin();
    int run_cycles(PhaseSeconds& phases, double& total);
    double cycle_seconds(PhaseSeconds& phases);

    ForcedAcceptance forced_;
    Plan plan_;
    bool one_level_ = false;
    Model::Drafting drafting_;
    double tau_ = 0;  // for a given shape
    int64_t nodes_ = 0, tokens_ = 0, plain_cycles_ = 0;
    std::vector<double> plain_;       // per round: seconds of a plain token
    std::vector<double> round_taus_;  // per round: tokens per cycle
    CycleTimes times_;
};

}  // namespace aerie
