// Measured costs and their cache: a file is used only if it is whole and of the same key.
#include "engine/costs.h"

#include <gtest/gtest.h>

#include <utility>

#ifndef _WIN32
#include <sys/resource.h>

#include <csignal>
#endif

#include "engine/bundled.h"
#include "engine/learned_costs.h"
#include "io/damage.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

const MeasuredCosts kCosts{.verify = {{1, 0.5}, {2, 0.5}, {8, 1.25}},
                           .level = {{1, 0.125}, {10, 0.25}},
                           .keys = 7,
                           .per_key = {{1, 0.01}, {8, 0.01}}};
const std::string kKey = "cpu; some \"model\"";

TEST(Measure, GivesPointsInOrderWithinItsBudget) {
    Bundled model(bundled_options(DType::F16));
    auto drafting = model.drafting(auto_options());
    const auto start = std::chrono::steady_clock::now();
    const MeasuredCosts costs =
        measure_costs(*drafting.session, *drafting.drafter->cost_aware(), 0.9);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
#ifdef NDEBUG
    EXPECT_LT(took.count(), 2) << "a point may take twice what was expected, no more";
#endif
    for (const auto& points : {costs.verify, costs.level}) {
        ASSERT_GE(points.size(), 1u);
        EXPECT_EQ(points.front().rows, 1);
        EXPECT_GT(points.front().seconds, 0);
        for (size_t i = 1; i < points.size(); ++i) {
            EXPECT_GT(points[i].rows, points[i - 1].rows);
            EXPECT_GE(points[i].seconds, points[i - 1].seconds);
        }
    }
    EXPECT_LE(costs.level.back().rows, drafting.drafter->cost_aware()->widest_level());
    const MeasuredCosts least =
        measure_costs(*drafting.session, *drafting.drafter->cost_aware(), 0);
    EXPECT_EQ(least.verify.size(), 1u);
    EXPECT_EQ(least.level.size(), 1u);
}

// A drafter with levels that take far longer than passes of the bundled model; on a busy machine
// two of three rounds over them take three times as long.
class ScriptedLevels final : public CostAware {
  public:
    explicit ScriptedLevels(bool is_busy) : is_busy_(is_busy) {}

    void calm_down() { is_busy_ = false; }
    double level_seconds(const DraftRequest&, int) override {
        // Between two rounds over the levels there are passes.
        const double before = std::exchange(last_, steady_seconds());
        if (last_ - before > 0.02) ++rounds_;
        return is_busy_ && rounds_ % 3 != 1 ? 300 : 100;
    }
    int widest_level() const override { return 1; }
    void set_costs(const MeasuredCosts& costs) override { given_costs = costs; }
    Account& account(DraftState&) override { return account_; }
    TreePlan planned(const DraftState&) const override { return {}; }

    MeasuredCosts given_costs;

  private:
    bool is_busy_;
    int rounds_ = 0;
    double last_ = 0;  // time of the newest call
    Account account_;
};

// A position costs time; without room for a long text nothing is known of it. The measurement
// leaves nothing in the session.
TEST(Measure, FindsWhatALongTextCosts) {
    Bundled model(bundled_options(DType::F16));
    for (const int context : {512, 2048}) {
        BatchLimits limits = model.limits();
        limits.context = context;
        auto drafting = model.drafting(auto_options(), limits);
        Session& session = *drafting.session;
        const MeasuredCosts costs =
            measure_costs(session, *drafting.drafter->cost_aware(), kMeasureSeconds);
        EXPECT_GT(costs.keys, 0);
        ASSERT_EQ(costs.per_key.empty(), context == 512);
        if (costs.per_key.empty()) continue;
        EXPECT_EQ(costs.per_key[0].rows, 1);
        EXPECT_GT(costs.per_key.back().seconds, 0);
        EXPECT_LT(1000 * costs.per_key.back().seconds, 100 * costs.verify.back().seconds);
        EXPECT_EQ(session.committed(), 0);
        const Request request = model.request(model.encode(sixty_prompts()[0]), 20);
        const auto plain = model.drafting(draft_options("none"));
        EXPECT_EQ(model.run(session, request).ids, model.run(*plain.session, request).ids);
    }
}

TEST(Measure, SaysHowFarRoundsDiffered) {
    Bundled model(bundled_options(DType::F16));
    auto drafting = model.drafting(auto_options());
    ScriptedLevels quiet(false), busy(true);
    EXPECT_NEAR(measure_costs(*drafting.session, quiet, kMeasureSeconds).spread, 1, 0.01);
    EXPECT_GT(measure_costs(*drafting.session, busy, kMeasureSeconds).spread, 2);
}

TEST(LearnedCosts, KeepsNoneOfABusyMachine) {
    for (const bool stays_busy : {false, true}) {
        const TestFolder cache;
        LoadOptions options = bundled_options(DType::F16);
        options.cache = cache.path();
        std::vector<std::string> stages;
        ScriptedLevels drafter(true);
        options.on_progress = [&](const LoadProgress& now) {
            stages.push_back(now.line);
            if (now.line.find("again") != std::string::npos && !stays_busy) drafter.calm_down();
        };
        Model model(ModelFiles::open(options), options, open_device(options.device));
        Model::Drafting drafting = model.start_session(auto_options());
        stages.clear();
        const LearnedCosts learned(model, drafter, *drafting.session);
        EXPECT_EQ(stages.size(), 2u) << "it was measured again";
        EXPECT_EQ(drafter.given_costs.spread > 1.3, stays_busy);
        EXPECT_EQ(fs::is_empty(cache.path()), stays_busy);
    }
}

TEST(Measure, OnlyForDraftersThatAskForIt) {
    Bundled model(bundled_options(DType::F16));
    for (const std::string kind : {"none", "chain", "eagle1", "eagle2"})
        EXPECT_EQ(model.drafting(draft_options(kind)).drafter->cost_aware(), nullptr);
    DraftOptions ablation = auto_options();
    ablation.use_value = false;
    EXPECT_EQ(model.drafting(ablation).drafter->cost_aware(), nullptr);
}

TEST(CostCache, ReadsBackWhatItWrote) {
    const TestFolder folder;
    const fs::path cache = folder.path() / "not" / "there";
    EXPECT_FALSE(read_costs(cache, kKey));
    ASSERT_TRUE(write_costs(cache, kKey, kCosts));
    const auto costs = read_costs(cache, kKey);
    ASSERT_TRUE(costs);
    ASSERT_EQ(costs->verify.size(), 3u);
    EXPECT_EQ(costs->verify[2].rows, 8);
    EXPECT_EQ(costs->verify[2].seconds, 1.25);
    EXPECT_EQ(costs->level[1].seconds, 0.25);
    EXPECT_EQ(costs->keys, 7);
    ASSERT_EQ(costs->per_key.size(), 2u);
    EXPECT_EQ(costs->per_key[1].rows, 8);
    EXPECT_EQ(costs->per_key[1].seconds, 0.01);
    EXPECT_FALSE(read_costs(cache, kKey + " of another shape"));
    EXPECT_EQ(std::distance(fs::directory_iterator(cache), {}), 1) << "nothing half-written stays";
}

TEST(CostCache, AFileOfAnotherKeyIsNone) {
    const TestFolder folder;
    ASSERT_TRUE(write_costs(folder.path(), kKey, kCosts));
    fs::copy_file(cost_file(folder.path(), kKey), cost_file(folder.path(), "other"));
    EXPECT_FALSE(read_costs(folder.path(), "other"));
}

TEST(CostCache, ADamagedFileIsNoneAndIsReplaced) {
    const TestFolder folder;
    ASSERT_TRUE(write_costs(folder.path(), kKey, kCosts));
    const fs::path file = cost_file(folder.path(), kKey);
    const std::string whole = read_text(file, 1 << 16);
    for (size_t length = 0; length + 1 < whole.size(); ++length) {
        std::ofstream(file) << whole.substr(0, length);
        EXPECT_FALSE(read_costs(folder.path(), kKey)) << length;
    }
    for (const auto& [from, to] :
         std::vector<std::pair<std::string, std::string>>{{"[[1,0.5]", "[[1,-0.5]"},
                                                          {"[[1,0.5]", "[[0,0.5]"},
                                                          {"[[1,0.5]", "[[2,0.5]"},
                                                          {"[[1,0.5]", "[[1,0.5,1]"},
                                                          {"[[1,0.5]", "[[1,\"0.5\"]"},
                                                          {"[[1,0.5]", "[[1,0.75]"},
                                                          {"[8,1.25]", "[65,1.25]"},
                                                          {"[8,1.25]", "[8,1e300]"},
                                                          {"aerie-costs-3", "aerie-costs-2"},
                                                          {"[[1,0.01]", "[[1,-0.01]"},
                                                          {"\"keys\":7", "\"keys\":-7"},
                                                          {"\"per_key\"", "\"per_keys\""},
                                                          {"\"level\"", "\"levels\""}}) {
        std::string damaged = whole;
        ASSERT_NE(damaged.find(from), std::string::npos) << from << " in " << whole;
        damaged.replace(damaged.find(from), from.size(), to);
        std::ofstream(file) << damaged;
        EXPECT_FALSE(read_costs(folder.path(), kKey)) << damaged;
    }
    ASSERT_TRUE(write_costs(folder.path(), kKey, kCosts));
    EXPECT_TRUE(read_costs(folder.path(), kKey));
}

// A pass of 8 rows met a busy moment: it took 32.7 ms, although two passes of 4 take 0.84.
TEST(Measure, TimingsAreNeverTooShort) {
    const std::vector<CostPoint> points =
        plausible({{1, 0.4}, {2, 0.3}, {4, 0.42}, {8, 32.7}, {16, 1.1}, {64, 90}});
    const double expected[] = {0.3, 0.3, 0.42, 0.84, 1.1, 4.4};
    for (size_t i = 0; i < points.size(); ++i) EXPECT_DOUBLE_EQ(points[i].seconds, expected[i]);
    EXPECT_EQ(plausible({{1, 5}})[0].seconds, 5);
}

TEST(CostCache, WhatCannotBeIsNone) {
    const TestFolder folder;
    ASSERT_TRUE(write_costs(folder.path(), kKey, {{{1, 0.4}, {4, 0.42}, {8, 32.7}}, {{1, 0.1}}}));
    EXPECT_FALSE(read_costs(folder.path(), kKey));
    ASSERT_TRUE(
        write_costs(folder.path(), kKey, {plausible({{1, 0.1}, {3, 0.7}, {10, 7}}), {{1, 0.1}}}));
    EXPECT_TRUE(read_costs(folder.path(), kKey)) << "what is measured can be read again";
}

TEST(CycleCosts, TellHowFarTheyWereCorrected) {
    CycleCosts costs(kCosts);
    EXPECT_EQ(costs.correction(), 1);
    for (int i = 0; i < 100; ++i) costs.saw_verify(1, 0.5);
    EXPECT_NEAR(costs.correction(), 1, 1e-9) << "as measured";
    for (int i = 0; i < 100; ++i) {
        costs.saw_verify(1, 0.5);
        costs.saw_verify(8, 6);
    }
    EXPECT_GT(costs.correction(), 2);
}

#ifndef _WIN32
// The disk is full after ten bytes: nothing is left, and the next start measures.
TEST(CostCache, AFullDiskIsNoErrorAndLeavesNothing) {
    const TestFolder folder;
    std::signal(SIGXFSZ, SIG_IGN);
    rlimit before;
    getrlimit(RLIMIT_FSIZE, &before);
    rlimit limit = before;
    limit.rlim_cur = 10;
    setrlimit(RLIMIT_FSIZE, &limit);
    const bool is_written = write_costs(folder.path(), kKey, kCosts);
    setrlimit(RLIMIT_FSIZE, &before);
    EXPECT_FALSE(is_written);
    EXPECT_TRUE(fs::is_empty(folder.path()));
}
#endif

TEST(CostCache, AFolderThatCannotBeMadeIsNoError) {
    const TestFolder folder;
    folder.write("file", "");
    EXPECT_FALSE(write_costs(folder.path() / "file" / "cache", kKey, kCosts));
    EXPECT_FALSE(read_costs(folder.path() / "file" / "cache", kKey));
}

}  // namespace
}  // namespace aerie::test
