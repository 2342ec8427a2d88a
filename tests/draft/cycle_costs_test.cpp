// Cost curves by themselves: lines between the points, the effect of a timing, frozen costs.
#include "draft/trees/cycle_costs.h"

#include <gtest/gtest.h>

namespace aerie::test {
namespace {

const MeasuredCosts kMeasured{{{1, 2.0}, {4, 5.0}, {8, 7.0}}, {{1, 0.4}, {10, 1.3}}};

TEST(CostCurve, LinesBetweenThePointsAndBeyond) {
    const CostCurve curve(kMeasured.verify);
    EXPECT_DOUBLE_EQ(curve.at(1), 2);
    EXPECT_DOUBLE_EQ(curve.at(3), 4);
    EXPECT_DOUBLE_EQ(curve.at(6), 6);
    EXPECT_DOUBLE_EQ(curve.at(12), 9);  // the last line is extended
    EXPECT_DOUBLE_EQ(curve.at(2 * kMaxNodes), 2 * curve.at(kMaxNodes));
    EXPECT_DOUBLE_EQ(curve.at(0), curve.at(1));
}

TEST(CostCurve, NoisyPointsNeverGiveAFreePass) {
    const CostPoint falling[] = {{1, 2.0}, {2, 1.5}};
    const CostCurve curve(falling);
    for (int rows = 1; rows <= kMaxNodes; ++rows) EXPECT_GE(curve.at(rows), 1) << rows;
}

TEST(CostCurve, ACorrectionReachesTheNeighboursByHalf) {
    CostCurve curve(kMeasured.verify);
    const double before[] = {curve.at(3), curve.at(4), curve.at(5), curve.at(6)};
    curve.correct(4, 1.5);
    EXPECT_DOUBLE_EQ(curve.at(3), 1.25 * before[0]);
    EXPECT_DOUBLE_EQ(curve.at(4), 1.5 * before[1]);
    EXPECT_DOUBLE_EQ(curve.at(5), 1.25 * before[2]);
    EXPECT_DOUBLE_EQ(curve.at(6), before[3]);
}

TEST(CycleCosts, AreInPlainCycles) {
    const CycleCosts costs(kMeasured);
    EXPECT_DOUBLE_EQ(costs.verify(1), 1);
    EXPECT_DOUBLE_EQ(costs.verify(8), 3.5);
    EXPECT_DOUBLE_EQ(costs.level(10), 0.65);
    EXPECT_DOUBLE_EQ(costs.root(1), 0.2);
}

// A machine that became slower is slower in all parts, so the ratios stay; timings of one part
// alone move that part.
TEST(CycleCosts, TimingsMoveTheirOwnPart) {
    CycleCosts costs(kMeasured);
    for (int i = 0; i < 1000; ++i) {
        costs.saw_verify(1, 2.0);
        costs.saw_verify(8, 14.0);
    }
    EXPECT_NEAR(costs.verify(8), 7, 0.2);
    const double before = costs.verify(8);
    costs.saw_verify(8, 0);  // no timing
    costs.saw_verify(8, -1);
    EXPECT_DOUBLE_EQ(costs.verify(8), before);
}

TEST(CycleCosts, OneInterruptedPassCountsLittle) {
    CycleCosts costs(kMeasured);
    costs.saw_verify(8, 1e6);
    EXPECT_LE(costs.verify(8), 1.05 * 3.5);
}

// A lookup takes ten times as long as it was measured, for its index left the caches meanwhile. It
// is a thousandth of a pass, of which it says nothing.
TEST(CycleCosts, ShortTimingsLeaveThePassesAlone) {
    CycleCosts measured(MeasuredCosts{{{1, 1.0}, {4, 1.4}}, {{1, 1e-3}}});
    CycleCosts assumed;
    for (int cycle = 0; cycle < 200; ++cycle)
        for (CycleCosts* costs : {&measured, &assumed}) {
            costs->saw_root(1, 1e-2);
            costs->saw_verify(1, 1.0);
        }
    EXPECT_NEAR(measured.verify(4), 1.4, 0.01);
    EXPECT_NEAR(measured.root(1), 1e-2, 1e-3);
    EXPECT_NEAR(assumed.verify(4), 1.4, 0.05);
}

TEST(CycleCosts, FrozenOnesNeverMove) {
    MeasuredCosts frozen = kMeasured;
    frozen.frozen = true;
    CycleCosts costs(frozen), never_timed(kMeasured);
    for (int i = 0; i < 100; ++i) {
        costs.saw_verify(1 + i % 8, 3.0);
        costs.saw_level(10, 0.1 * i);
        costs.saw_root(1, 9);
    }
    for (int rows = 1; rows <= kMaxNodes; ++rows) {
        EXPECT_EQ(costs.verify(rows), never_timed.verify(rows));
        EXPECT_EQ(costs.level(rows), never_timed.level(rows));
        EXPECT_EQ(costs.root(rows), never_timed.root(rows));
    }
}

// A row delays all sequences of a round; timings of shared passes change the speed alone.
TEST(CycleCosts, ARowOfARoundCostsEachSequenceItsDelay) {
    CycleCosts costs(kMeasured);
    costs.begin_round({.sequences = 4, .drafting = 2, .rows = 1.5});
    const auto expect_costs = [&] {
        EXPECT_DOUBLE_EQ(costs.verify(1), 1);
        EXPECT_DOUBLE_EQ(costs.verify(3), 1 + 4 * (6.5 - 5.5) / 5);  // 7 rows instead of 5
        EXPECT_DOUBLE_EQ(costs.level(1), 4 * 0.5 / 5 / 2);           // both share 2 rows
    };
    expect_costs();
    for (int i = 0; i < 1000; ++i) costs.saw_shared_pass(5 + i % 3, i % 2 == 0 ? 4 : 20);
    expect_costs();
    for (int i = 0; i < 1000; ++i) costs.saw_shared_pass(6, 2 * 6.0);
    expect_costs();
    EXPECT_NEAR(costs.of(1), 4.0 / 5 / 2, 1e-6) << "the machine is half as fast";
}

// Each position of the text adds to a pass by its rows, so the cost of a tree in plain cycles moves
// with the text's length.
TEST(CycleCosts, GrowWithTheText) {
    MeasuredCosts measured = kMeasured;
    measured.keys = 100;
    measured.per_key = {{1, 1e-3}, {4, 4e-3}, {8, 4e-3}};
    CycleCosts costs(measured);
    EXPECT_DOUBLE_EQ(costs.verify(8), 3.5);
    costs.begin_round({.keys = 100});
    EXPECT_DOUBLE_EQ(costs.verify(8), 3.5);
    costs.begin_round({.keys = 2100});
    EXPECT_DOUBLE_EQ(costs.verify(4), 13.0 / 4);
    EXPECT_DOUBLE_EQ(costs.verify(8), 15.0 / 4);
    EXPECT_DOUBLE_EQ(costs.level(1), 0.4 / 4);
    for (int i = 0; i < 100; ++i) {
        costs.saw_verify(1, 4);
        costs.saw_verify(8, 15);
    }
    EXPECT_DOUBLE_EQ(costs.verify(8), 15.0 / 4) << "timings that are as expected";
    costs.begin_round({.keys = 0});
    EXPECT_NEAR(costs.verify(4), 4.6 / 1.9, 1e-9);
    costs.begin_round({.sequences = 2, .drafting = 1, .rows = 1, .keys = 1100});
    EXPECT_DOUBLE_EQ(costs.verify(3), 1 + 2 * (9 - 5) / 5.0);
}

// Without complete measurements the built-in guesses hold until the first timing gives them a unit.
TEST(CycleCosts, HalfAMeasurementIsNone) {
    const CycleCosts none, half(MeasuredCosts{{{1, 5.0}}, {}});
    for (int rows : {1, 8, 64}) EXPECT_EQ(half.verify(rows), none.verify(rows));
    CycleCosts seen;
    seen.saw_verify(1, 0.125);
    for (int rows : {1, 8, 64}) EXPECT_DOUBLE_EQ(seen.verify(rows), none.verify(rows));
}

}  // namespace
}  // namespace aerie::test
