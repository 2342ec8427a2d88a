// A language model behind the seam that trees are grown through: the target drafting for itself.
#include <gtest/gtest.h>

#include "engine/bundled.h"
#include "engine/checks.h"
#include "engine/language_levels.h"

namespace aerie::test {
namespace {

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
