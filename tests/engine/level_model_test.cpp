// Other models than an EAGLE-1/2 head behind the seam that trees are grown through: an EAGLE-3 head
// against its golden trees and tau, and the target drafting for itself.
#include <gtest/gtest.h>

#include "engine/bundled.h"
#include "engine/checks.h"
#include "engine/eagle3_levels.h"
#include "engine/first_trees.h"
#include "engine/language_levels.h"

namespace aerie::test {
namespace {

// The bundled model in f32 with an EAGLE-3 head.
class Eagle3 : public testing::Test {
  protected:
    Eagle3() : head_(open_model(models_dir() / "aerie-tiny-eagle3")) {
        config_ = model_.target().config();
        config_.layers = 1;
        options_.method = "eagle2";
        options_.tree = TreeShape{};
        options_.proposals = Proposals::plain;
    }

    Model::Drafting drafting() {
        const Growth growth = dynamic_growth(options_);
        DraftPlan plan =
            model_.model().files().draft_plan(options_, bundled_options(), model_.limits());
        plan.source = &head_;
        plan.head = &config_;
        const DraftSource source{model_.backend(), model_.target(), plan, nullptr};
        auto levels = std::make_unique<Eagle3Levels>(source, reach_of(growth), 2048, 3);
        // Outputs of layers 1, 2 and 4.
        return model_.model().with(make_grown(source, {std::move(levels), {2, 3, 5}, growth}));
    }

    Bundled model_;
    ModelSource head_;
    ModelConfig config_;
    DraftOptions options_;
};

TEST_F(Eagle3, FirstTrees) {
    std::vector<Candidate> table;
    options_.on_level = [&](std::span<Candidate> all, int, int) {
        table.assign(all.begin(), all.end());
    };
    auto drafting = this->drafting();
    EXPECT_EQ(first_trees_finding(*drafting.session, "eagle3", table), "");
}

TEST_F(Eagle3, Tau) {
    auto drafting = this->drafting();
    const GoldenRun run = run_golden(model_, "eagle3", *drafting.session);
    EXPECT_EQ(golden_finding(run), "");
    const double want = read_data("tau.json").find("eagle3")->find("all")->number();
    const double tau = run.all.at("all").value();
    std::printf("tau %.4f, reference %.4f\n", tau, want);
    EXPECT_NEAR(tau / want, 1, kTauTolerance);
}

// In a chain every token that the target drafts for itself is accepted, in a tree the first one.
TEST(LanguageModel, DraftsForItself) {
    Bundled model;
    DraftOptions options;
    options.chain_length = 6;
    options.tree = {16, 4, 3};
    for (const Growth& growth : {chain_growth(options), dynamic_growth(options)}) {
        const DraftPlan plan =
            model.model().files().draft_plan(options, bundled_options(), model.limits());
        const DraftSource source{model.backend(), model.target(), plan, nullptr};
        const auto drafting = model.model().with(make_grown(
            source, {std::make_unique<LanguageLevels>(source, model.target(), reach_of(growth)),
                     {},
                     growth}));
        const auto plain = model.drafting(draft_options("none"));
        for (size_t i : {0, 7}) {
            const Request request = model.request(model.encode(sixty_prompts()[i]), 60);
            const GenerationResult drafted = model.run(*drafting.session, request);
            EXPECT_EQ(drafted.ids, model.run(*plain.session, request).ids);
            const std::vector<int>& accepted = drafted.stats.accepted_by_depth;
            ASSERT_EQ(int(accepted.size()), growth.shape.levels);
            const int whole = drafted.stats.cycles - 1;  // the last one may be cut short
            EXPECT_GE(growth.shape.top_k == 1 ? accepted.back() : accepted.front(), whole);
        }
    }
}

}  // namespace
}  // namespace aerie::test
