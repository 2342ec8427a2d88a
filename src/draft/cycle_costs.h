// What the parts of a draft-and-verify cycle cost, by their rows: measured at load, then corrected
// by the cycles' own timings.
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

// As measured; points by ascending rows. Without points of `verify` everything is a guess until the
// first cycles.
struct MeasuredCosts {
    std::vector<CostPoint> verify;  // a target pass and its choices
    std::vector<CostPoint> level;   // a level of the head: pass, LM head, candidates
    // The cycles' own timings change nothing: equal texts get equal trees on every run.
    bool frozen = false;
    // The median measuring round's time over the fastest one's: far above 1 where something else
    // ran beside it.
    double spread = 1;
};

// Seconds by rows: straight lines between the points; beyond the last its line goes on.
class CostCurve {
  public:
    explicit CostCurve(std::span<const CostPoint> points);

    double at(int rows) const;
    // Moves the curve at these rows, and half as much beside them, by this factor.
    void correct(int rows, double factor);

  private:
    std::array<double, kMaxNodes + 1> seconds_ = {};  // [0] unused
};

// Costs in units of a plain cycle, i.e. of a target pass over one row.
class CycleCosts {
  public:
    explicit CycleCosts(const MeasuredCosts& measured = {});

    double verify(int rows) const { return verify_.at(rows) / verify_.at(1); }
    double level(int rows) const { return level_.at(rows) / verify_.at(1); }
    // The head over positions that it has missed, maybe none, and the root's candidates.
    double root(int rows) const { return root_.at(rows) / verify_.at(1); }

    bool is_frozen() const { return frozen_; }
    // Of something that was timed; nothing where timings count for nothing.
    double of(double seconds) const {
        return frozen_ ? 0 : seconds / (verify_.at(1) * (speed_ > 0 ? speed_ : 1));
    }

    void saw_verify(int rows, double seconds) { saw(verify_, rows, seconds); }
    void saw_level(int rows, double seconds) { saw(level_, rows, seconds); }
    void saw_root(int rows, double seconds) { saw(root_, rows, seconds); }
    // The factor, at least 1, by which the cycles have corrected what was measured, where it is
    // largest.
    double correction() const;

  private:
    void saw(CostCurve& curve, int rows, double seconds);

    CostCurve verify_, level_, root_;
    CostCurve measured_verify_, measured_level_;
    bool frozen_;
    double speed_ = 1;  // of the machine now, seconds of a curve times this; 0: nothing seen yet
};

}  // namespace aerie
