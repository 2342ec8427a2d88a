// Draft-and-verify cycles of EAGLE-2 whose acceptance is forced, and what they take.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/forced_acceptance.h"
#include "engine/model.h"
#include "measure/timings.h"

namespace aerie {

// Cycles with one setting of the tree.
struct CycleTimes {
    std::string tree;  // "auto" or "60,6,10"
    int cycles = 0;
    double tau = 0;          // tokens a cycle
    double tree_nodes = 0;   // mean, root included
    double plain_share = 0;  // of the cycles: of a bare root
    // Of each round: the mean cycle and its parts; `rest` is sampling and the host.
    Timings seconds, draft, verify, rest;
    Timings speedup;  // of each round: over plain decoding
};

class CycleBench {
  public:
    struct Plan {
        std::optional<TreeShape> shape;  // unset: chosen by measurement
        double round_seconds = 1;        // what a round's cycles may take; three are always run
        std::vector<int> prompt;
    };
    // Throws Error.
    CycleBench(Model& model, ForcedAcceptance forced, const Plan& plan);
    CycleBench(const CycleBench&) = delete;  // the drafter calls back
    CycleBench& operator=(const CycleBench&) = delete;

    // Adds the time of a draft level: what a tree of several takes longer than one of a single
    // level. Nothing where the shape is not given.
    void time_level(Timings& level);
    void warm_up();  // as many cycles as a round has, for a drafter that learns
    void round();    // some cycles
    // The mean time of a token that was decoded plainly just before and after that round.
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
    double tau_ = 0;  // of a given shape
    int64_t nodes_ = 0, tokens_ = 0, plain_cycles_ = 0;
    std::vector<double> plain_;       // of each round: seconds of a plain token
    std::vector<double> round_taus_;  // tokens a cycle
    CycleTimes times_;
};

}  // namespace aerie
