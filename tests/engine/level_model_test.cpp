// A language model behind the interface that trees are grown through (LevelModel): the target
// drafts for itself.
#include <gtest/gtest.h>

#include "engine/checks.h"

namespace aerie::test {
namespace {

// In a chain every token that the target drafts for itself is accepted, in a tree the first one is.
TEST(LanguageModel, DraftsForItself) {
    LoadOptions options = bundled_options();
    options.head = options.model;
    options.draft.method = "model";
    Bundled model(options);
    const auto plain = model.drafting(draft_options("none"));
    for (const TreeShape shape : {TreeShape{7, 6, 1}, TreeShape{16, 4, 3}}) {
        DraftOptions draft = draft_options("model");
        draft.tree = shape;
        const auto drafting = model.drafting(draft);
        for (size_t i : {0, 7}) {
            const Request request = model.request(model.encode(sixty_prompts()[i]), 60);
            const GenerationResult drafted = model.run(*drafting.session, request);
            EXPECT_EQ(drafted.ids, model.run(*plain.session, request).ids);
            const std::vector<int>& accepted = drafted.stats.accepted_by_depth;
            ASSERT_EQ(int(accepted.size()), shape.levels);
            const int whole = drafted.stats.cycles - 1;  // the last cycle may be cut short
            EXPECT_GE(shape.top_k == 1 ? accepted.back() : accepted.front(), whole);
        }
    }
}

}  // namespace
}  // namespace aerie::test
