// Counts the work of a plain token on a GPU: a graph, and a number of kernels per layer.
#include <gtest/gtest.h>

#include "engine/bundled.h"

namespace aerie::test {
namespace {

class TokenCounts : public testing::TestWithParam<DType> {};

// The kernels of a layer: norm; qkv and rotation; attention; its output; norm; gates and ups; down.
TEST_P(TokenCounts, OfALayer) {
    Bundled model(bundled_options(GetParam()));
    const int layers = model.target().config().layers;
    const auto drafting = model.drafting(draft_options("none"));
    Session& session = *drafting.session;
    session.begin({});
    session.prefill(model.encode("Once upon a time"));
    long last = 0, recordings = 0;
    for (int token = 0; token < 8; ++token) {
        const CommandCounts before = model.backend().command_counts();
        const TokenTree tree = session.propose();
        session.commit(tree, accept(tree, session.verify(tree)));
        const CommandCounts after = model.backend().command_counts();
        last = after.dispatches - before.dispatches;
        recordings = after.recordings - before.recordings;
        EXPECT_LE(last, 5 * layers + 6) << token;  // 6 outside of layers
        EXPECT_GT(last, 4 * layers) << token;
    }
    EXPECT_EQ(recordings, 0);
    std::printf("%s: %ld kernels a token of %d layers\n", name(GetParam()), last, layers);
}

// The counts of the third cycle of a text.
CommandCounts counts_of_cycle(Bundled& model, int levels) {
    DraftOptions draft = draft_options("eagle2");
    draft.tree = TreeShape{60, levels, 10};
    const auto drafting = model.drafting(draft);
    Session& session = *drafting.session;
    session.begin({});
    session.prefill(model.encode("Once upon a time"));
    CommandCounts counts;
    for (int cycle = 0; cycle < 3; ++cycle) {
        const CommandCounts before = model.backend().command_counts();
        const TokenTree tree = session.propose();
        session.commit(tree, accept(tree, session.verify(tree)));
        counts = model.backend().command_counts();
        counts.dispatches -= before.dispatches;
        counts.submissions -= before.submissions;
    }
    return counts;
}

// The input of the head, its layer (nine kernels for more than eight rows, since rotation and
// merging have kernels of their own then), its LM head, and the choice of the next nodes.
TEST(LevelCounts, OfALevelOfDrafting) {
    Bundled model(bundled_options(DType::Q8_0));
    const long level = counts_of_cycle(model, 6).dispatches - counts_of_cycle(model, 5).dispatches;
    std::printf("%ld kernels a level\n", level);
    EXPECT_LE(level, 15);
}

// A graph that drafts and one that verifies, each with a read; the choice; the kernels that
// compact, gather and keep the accepted rows; the head's pass over these.
TEST(LevelCounts, BetweenDraftingAndVerifying) {
    Bundled model(bundled_options(DType::Q8_0));
    const long submissions = counts_of_cycle(model, 6).submissions;
    std::printf("%ld submissions a cycle\n", submissions);
    EXPECT_LE(submissions, 2 + 2 + 1 + 3 + 12);
}

INSTANTIATE_TEST_SUITE_P(Types, TokenCounts,
                         testing::Values(DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0),
                         [](const auto& info) { return name(info.param); });

}  // namespace
}  // namespace aerie::test
