// The costs of the parts of a draft-and-verify cycle, by their number of rows. They are measured at
// load, then corrected by the cycles' own timings.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "core/rows.h"

namespace aerie {

struct CostPoint {
    int rows = 0;
    double seconds = 0;
};

// Measured points by ascending rows. Without points of `verify` everything is assumed until the
// first cycles.
struct MeasuredCosts {
    std::vector<CostPoint> verify;  // a target pass and its choices
    std::vector<CostPoint> level;   // a level of the head: pass, LM head, candidates
    // If true, the cycles' own timings change nothing: equal texts get equal trees in every run.
    bool frozen = false;
    // The median round's time over the fastest round's: far above 1 if something else ran during
    // the measurement.
    double spread = 1;
};

// Seconds by rows: linear between the points, and beyond the last one as between the last two.
class CostCurve {
  public:
    explicit CostCurve(std::span<const CostPoint> points);

    double at(int rows) const;
    // Multiplies the curve at this number of rows by `factor`, and moves its neighbours half as
    // far.
    void correct(int rows, double factor);

  private:
    std::array<double, kMaxNodes + 1> seconds_ = {};  // [0] unused
};

// Costs in plain cycles: the unit is a target pass over one row.
class CycleCosts {
  public:
    explicit CycleCosts(const MeasuredCosts& measured = {});

    double verify(int rows) const { return verify_.at(rows) / verify_.at(1); }
    double level(int rows) const { return level_.at(rows) / verify_.at(1); }
    // The head's pass over `rows` positions that it has missed, and the root's candidates.
    double root(int rows) const { return root_.at(rows) / verify_.at(1); }

    bool is_frozen() const { return frozen_; }
    // A timed duration in plain cycles; 0 if the costs are frozen.
    double of(double seconds) const {
        return frozen_ ? 0 : seconds / (verify_.at(1) * (speed_ > 0 ? speed_ : 1));
    }

    void saw_verify(int rows, double seconds) { saw(verify_, rows, seconds); }
    void saw_level(int rows, double seconds) { saw(level_, rows, seconds); }
    void saw_root(int rows, double seconds) { saw(root_, rows, seconds); }
    // The largest factor, at least 1, by which timings have corrected a measured cost up or down.
    double correction() const;

  private:
    void saw(CostCurve& curve, int rows, double seconds);

    CostCurve verify_, level_, root_;
    CostCurve measured_verify_, measured_level_;
    bool frozen_;
    double speed_ = 1;  // present speed: a curve's seconds times this; 0: nothing was timed yet
};

}  // namespace aerie
