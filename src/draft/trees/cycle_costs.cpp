// A timing corrects one common factor (the machine became slower) and, more slowly, the curve near
// its own number of rows (the measurement was off, or the text became longer).
#include "draft/trees/cycle_costs.h"

#include <algorithm>

namespace aerie {

namespace {

constexpr double kSlope = 0.12;  // relative cost of a further row, for a curve with one point
constexpr double kSpeedStep = 1.0 / 16, kCurveStep = 1.0 / 32;
constexpr CostPoint kAssumedVerify[] = {{1, 1.0}, {2, 1.1}, {4, 1.4}, {8, 2.2}, {64, 14}};
constexpr CostPoint kAssumedLevel[] = {{1, 0.2}, {8, 0.4}, {64, 2.5}};

// Takes both curves from the same measurement or neither: the assumed ones are in units of their
// own.
std::span<const CostPoint> verify_points(const MeasuredCosts& measured) {
    if (measured.verify.empty() || measured.level.empty()) return kAssumedVerify;
    return measured.verify;
}

std::span<const CostPoint> level_points(const MeasuredCosts& measured) {
    if (measured.verify.empty() || measured.level.empty()) return kAssumedLevel;
    return measured.level;
}

}  // namespace

CostCurve::CostCurve(std::span<const CostPoint> points) {
    if (points.empty()) return;
    size_t i = 0;  // the line from point i to the next one holds
    for (int rows = 1; rows <= kMaxNodes; ++rows) {
        while (i + 2 < points.size() && rows > points[i + 1].rows) ++i;
        const CostPoint low = points[i];
        double slope = kSlope * low.seconds / low.rows;
        if (i + 1 < points.size())
            slope = (points[i + 1].seconds - low.seconds) / (points[i + 1].rows - low.rows);
        // Noise in the points must not yield a pass without cost.
        seconds_[size_t(rows)] =
            std::max(low.seconds + slope * (rows - low.rows), points[0].seconds / 2);
    }
}

double CostCurve::at(int rows) const {
    if (rows <= kMaxNodes) return seconds_[size_t(std::max(rows, 1))];
    return seconds_[kMaxNodes] * rows / kMaxNodes;
}

void CostCurve::correct(int rows, double factor) {
    rows = std::clamp(rows, 1, kMaxNodes);
    seconds_[size_t(rows)] *= factor;
    for (int beside : {rows - 1, rows + 1})
        if (beside >= 2 && beside <= kMaxNodes) seconds_[size_t(beside)] *= 1 + (factor - 1) / 2;
}

CycleCosts::CycleCosts(const MeasuredCosts& measured)
    : verify_(verify_points(measured)),
      level_(level_points(measured)),
      root_(level_),
      per_key_(measured.per_key),
      keys_(measured.keys),
      measured_verify_(verify_),
      measured_level_(level_),
      frozen_(measured.frozen),
      speed_(measured.verify.empty() || measured.level.empty() ? 0 : 1) {}

double CycleCosts::correction() const {
    double most = 1;
    for (int rows = 1; rows <= kMaxNodes; ++rows)
        for (double factor : {verify_.at(rows) / measured_verify_.at(rows),
                              level_.at(rows) / measured_level_.at(rows)})
            most = std::max({most, factor, 1 / factor});
    return most;
}

// A single interrupted pass must count for no more than a slow one.
double CycleCosts::ratio_of(double seconds, double expected) const {
    return std::clamp(seconds / (speed_ * expected), 0.5, 2.0);
}

void CycleCosts::saw_shared_pass(int rows, double seconds) {
    if (frozen_ || !(seconds > 0)) return;
    const double expected = pass(measured_verify_, rows);
    if (speed_ == 0)
        speed_ = seconds / expected;
    else
        speed_ *= 1 + (ratio_of(seconds, expected) - 1) * kSpeedStep;
}

void CycleCosts::saw_verify(int rows, double seconds) {
    saw(verify_, rows, seconds, pass(verify_, rows));
}

// `expected`: what the costs say of these rows, before the correction by speed_.
void CycleCosts::saw(CostCurve& curve, int rows, double seconds, double expected) {
    if (frozen_ || !(seconds > 0)) return;
    if (speed_ == 0) {
        if (&curve != &verify_) return;  // drafting may cost next to nothing
        speed_ = seconds / expected;
    }
    const double ratio = ratio_of(seconds, expected);
    // The time of a lookup, a thousandth of a pass, says nothing of the machine's speed: it depends
    // on what lies in the caches. Where costs are assumed, a lookup is known by its time alone.
    constexpr double kLeastShare = 0.02;
    if (std::min(seconds / speed_, expected) >= kLeastShare * verify_.at(1))
        speed_ *= 1 + (ratio - 1) * kSpeedStep;
    curve.correct(rows, 1 + (ratio - 1) * kCurveStep);
}

}  // namespace aerie
