// Lookahead's proposals: its window as a tree, n-grams of its pool as drafts, and no equal
// siblings.
#include <gtest/gtest.h>

#include <set>

#include "engine/checks.h"

namespace aerie::test {
namespace {

DraftOptions lookahead(int window, int ngram, int guesses) {
    DraftOptions options = draft_options("lookahead");
    options.lookahead = {window, ngram, guesses};
    return options;
}

std::string refusal(int window, int ngram, int guesses) {
    try {
        check_draft_options(lookahead(window, ngram, guesses));
        return "";
    } catch (const UsageError& error) {
        return error.what();
    }
}

TEST(LookaheadShape, IsCheckedBeforeAnythingIsLoaded) {
    EXPECT_EQ(refusal(7, 5, 7), "");
    EXPECT_EQ(refusal(20, 4, 1), "");
    EXPECT_EQ(refusal(21, 3, 10), "");
    for (const auto& [w, n, g] : {std::tuple{8, 5, 8}, std::tuple{21, 4, 1}, std::tuple{33, 2, 31},
                                  std::tuple{1 << 30, 2, 1 << 30}})
        EXPECT_NE(refusal(w, n, g).find("at most 63"), std::string::npos) << refusal(w, n, g);
    EXPECT_NE(refusal(34, 2, 1).find("32 tokens deep, not 33"), std::string::npos)
        << refusal(34, 2, 1);
    for (const auto& [w, n, g] :
         {std::tuple{0, 5, 1}, std::tuple{1, 1, 1}, std::tuple{1, 2, 0}, std::tuple{-5, 5, 7}})
        EXPECT_NE(refusal(w, n, g), "");
}

class LookaheadTree : public testing::Test {
  protected:
    Bundled model_;
};

TEST_F(LookaheadTree, HasNoEqualSiblingsAndStaysWithinItsShape) {
    for (const auto& [w, n, g] :
         {std::tuple{7, 5, 7}, std::tuple{1, 2, 1}, std::tuple{20, 4, 1}, std::tuple{33, 2, 30}}) {
        const auto drafting = model_.drafting(lookahead(w, n, g));
        Session& session = *drafting.session;
        session.begin({});
        session.prefill(model_.encode(sixty_prompts()[4]));
        int largest = 0;
        for (int cycle = 0; cycle < 40; ++cycle) {
            const TokenTree tree = session.propose();
            std::set<std::pair<int, int>> seen;
            for (int i = 1; i < tree.size(); ++i) {
                ASSERT_LT(tree.parents[size_t(i)], i);
                EXPECT_TRUE(seen.insert({tree.parents[size_t(i)], tree.tokens[size_t(i)]}).second);
            }
            largest = std::max(largest, tree.size());
            const NodeList choices = session.verify(tree);
            session.commit(tree, accept(tree, choices));
        }
        EXPECT_LE(largest, 1 + (n - 1) * (w + g));
        EXPECT_GE(largest, 1 + (n - 1) * w - n);
    }
}

// The window is a Jacobi iteration: each row is what the model chooses after the row before. Its
// n-grams are therefore likely to appear in the text.
TEST_F(LookaheadTree, FindsNGramsThatTheTextThenHas) {
    const auto drafting = model_.drafting(lookahead(7, 5, 7)),
               plain = model_.drafting(draft_options("none"));
    double tokens = 0, cycles = 0;
    for (size_t i = 0; i < 6; ++i) {
        const Request request = model_.request(model_.encode(sixty_prompts()[i]), 96);
        const GenerationResult result = model_.run(*drafting.session, request);
        EXPECT_EQ(result.ids, model_.run(*plain.session, request).ids);
        tokens += result.stats.cycle_tokens;
        cycles += result.stats.cycles;
    }
    std::printf("tau %.2f\n", tokens / cycles);
    EXPECT_GT(tokens / cycles, 1.3);
}

// A text that repeats itself finds its n-grams in the pool.
TEST_F(LookaheadTree, BeginsWithThePromptsNGrams) {
    const auto drafting = model_.drafting(lookahead(2, 4, 3));
    const auto state = drafting.drafter->begin();
    const std::vector<int> text = {1, 10, 11, 12, 13, 99, 10, 20, 21, 22, 98, 10};
    const TokenTree tree = drafting.drafter->propose({*state, text});
    const auto has = [&](std::vector<int> path) {
        int node = 0;
        for (int token : path) {
            int found = -1;
            for (int i = 1; i < tree.size(); ++i)
                if (tree.parents[size_t(i)] == node && tree.tokens[size_t(i)] == token) found = i;
            if (found < 0) return false;
            node = found;
        }
        return true;
    };
    EXPECT_TRUE(has({11, 12, 13}));
    EXPECT_TRUE(has({20, 21, 22}));
    EXPECT_FALSE(has({12}) && has({13}) && has({21}));
}

}  // namespace
}  // namespace aerie::test
