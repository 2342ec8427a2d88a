// The costs of the parts of a draft-and-verify cycle, by their number of rows. They are measured at
// load, then corrected by the cycles' own timings.
#pragma once

#include <algorithm>
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
    // Positions behind which `verify` was measured, and the seconds that each further position adds
    // to a pass, by its rows. Without points a longer text costs no more.
    int keys = 0;
    std::vector<CostPoint> per_key = {};
};

// Seconds by rows: linear between the points, and beyond the last one as between the last two.
class CostCurve {
  public:
    explicit CostCurve(std::span<const CostPoint> points);  // without points it is 0

    double at(int rows) const;
    // Multiplies the curve at this number of rows by `factor`, and moves its neighbours half as
    // far.
    void correct(int rows, double factor);

  private:
    std::array<double, kMaxNodes + 1> seconds_ = {};  // [0] unused
};

// The round that a sequence shares with others.
struct RoundShape {
    int sequences = 1;  // all of them
    int drafting = 1;   // the sequences that draft
    double rows = 1;    // rows of a tree, on the average
    double keys = -1;   // positions that a sequence attends to, on the average; -1: as measured
};

// Costs in plain cycles: the unit is a target pass over one row for each sequence of the round. A
// sequence pays for the time by which it delays the others, too: what it drafts costs the round's
// further time as often as there are sequences. So drafts never cost the others more than they
// bring.
class CycleCosts {
  public:
    explicit CycleCosts(const MeasuredCosts& measured = {});

    // The round in which the next proposals are made. At first a sequence is alone.
    void begin_round(const RoundShape& round) { round_ = round; }
    const RoundShape& round() const { return round_; }

    // A pass in which this sequence has a tree of `rows`.
    double verify(int rows) const {
        if (round_.sequences == 1) return pass(verify_, rows) / pass(verify_, 1);
        const int others = int((round_.sequences - 1) * round_.rows);
        return 1 + in_rounds(pass(measured_verify_, others + rows) -
                             pass(measured_verify_, others + 1));
    }
    // A level of `rows` for each of the sequences that draft, which share its time.
    double level(int rows) const {
        return in_rounds(level_.at(round_.drafting * rows)) / round_.drafting;
    }
    // The head's pass over `rows` positions that it has missed, and the root's candidates.
    double root(int rows) const {
        return in_rounds(root_.at(round_.drafting * rows)) / round_.drafting;
    }

    bool is_frozen() const { return frozen_; }
    // A timed duration in plain cycles; 0 if the costs are frozen.
    double of(double seconds) const {
        return frozen_ ? 0 : in_rounds(seconds) / (speed_ > 0 ? speed_ : 1);
    }

    void saw_verify(int rows, double seconds);
    // A pass that several sequences shared. It corrects the speed alone: their costs are
    // differences between points of the curve, as many times as there are sequences, and
    // corrections of single points would make them mostly noise.
    void saw_shared_pass(int rows, double seconds);
    void saw_level(int rows, double seconds) { saw(level_, rows, seconds, level_.at(rows)); }
    void saw_root(int rows, double seconds) { saw(root_, rows, seconds, root_.at(rows)); }
    // The largest factor, at least 1, by which timings have corrected a measured cost up or down.
    double correction() const;

  private:
    void saw(CostCurve& curve, int rows, double seconds, double expected);
    // A target pass behind the present text: each position that it is longer than the measured one
    // adds the same time.
    double pass(const CostCurve& curve, int rows) const {
        const double keys = round_.keys < 0 ? 0 : round_.keys - keys_;
        return std::max(curve.at(rows) + keys * per_key_.at(rows), curve.at(rows) / 2);
    }
    // Seconds by which a round becomes longer, as cycles that its sequences lose.
    double in_rounds(double seconds) const {
        const CostCurve& passes = round_.sequences == 1 ? verify_ : measured_verify_;
        return round_.sequences * seconds / pass(passes, round_.sequences);
    }
    double ratio_of(double seconds, double expected) const;

    CostCurve verify_, level_, root_;
    CostCurve per_key_;
    int keys_;
    CostCurve measured_verify_, measured_level_;
    RoundShape round_;
    bool frozen_;
    double speed_ = 1;  // present speed: a curve's seconds times this; 0: nothing was timed yet
};

}  // namespace aerie
