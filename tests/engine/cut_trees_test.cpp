// Chains, EAGLE-1's tree and lookahead's window are cut by what they cost: they change no text,
// keep their shape, and leave plain decoding alone where rows are dear.
#include <gtest/gtest.h>

#include "engine/bundled_heads.h"

namespace aerie::test {
namespace {

// Costs of a device on which rows are nearly free, and of one on which each costs half a pass. No
// clock changes them.
const MeasuredCosts kCheap{{{1, 3e-4}, {64, 4e-4}}, {{1, 1e-6}, {10, 2e-6}}, true};
const MeasuredCosts kDear{{{1, 3e-4}, {64, 1e-2}}, {{1, 2e-4}, {10, 4e-4}}, true};

class CutTrees : public testing::TestWithParam<std::tuple<const char*, float>> {
  protected:
    CutTrees() : model_(options_with({"eagle"}, DType::F16, std::get<0>(GetParam()))) {}

    std::string method() const { return std::get<0>(GetParam()); }
    Bundled::Drafting drafting(const MeasuredCosts& costs) {
        auto made = model_.drafting(chosen(method()));
        made.drafter->cost_aware()->set_costs(costs);
        return made;
    }
    Request request(size_t prompt) {
        Request request = model_.request(model_.encode(sixty_prompts()[prompt]), most_tokens(96),
                                         sampling_at(std::get<1>(GetParam()), 1000 + prompt));
        request.eos_ids.clear();
        return request;
    }
    Stats stats_of(const MeasuredCosts& costs) {
        const auto plain = model_.drafting(draft_options("none")), drafted = drafting(costs);
        Stats sum;
        for (size_t i = 0; i < 4; ++i) {
            const GenerationResult result = model_.run(*drafted.session, request(i));
            EXPECT_EQ(result.ids, model_.run(*plain.session, request(i)).ids);
            sum.cycle_tokens += result.stats.cycle_tokens;
            sum.cycle_nodes += result.stats.cycle_nodes;
            sum.cycles += result.stats.cycles;
        }
        std::printf("%.2f nodes, tau %.2f\n", double(sum.cycle_nodes) / sum.cycles,
                    double(sum.cycle_tokens) / sum.cycles);
        return sum;
    }

    Bundled model_;
};

TEST_P(CutTrees, DraftWhereRowsAreCheap) {
    const Stats stats = stats_of(kCheap);
    EXPECT_GT(stats.cycle_tokens, 1.2 * stats.cycles);
}

// Trials cost a few passes.
TEST_P(CutTrees, AreLeftOutWhereRowsAreDear) {
    const Stats stats = stats_of(kDear);
    const double a_row = (kDear.verify[1].seconds / kDear.verify[0].seconds - 1) / 63;
    const double cost = stats.cycles + a_row * (stats.cycle_nodes - stats.cycles);
    EXPECT_LE(cost, 1.03 * stats.cycle_tokens);
}

// The most nodes of each depth: of lookahead, of the window and the n-grams together.
TEST_P(CutTrees, HaveNoNodesThatTheWholeTreeLacks) {
    const LookaheadShape window;
    std::vector<size_t> widest = {4, 8, 8, 3, 2};
    if (method() == "chain") widest.assign(size_t(kMaxAuto.levels), 1);
    if (method() == "lookahead")
        widest.assign(size_t(window.depth()), size_t(window.ngram - 1 + window.guesses));
    const auto drafted = drafting(kCheap);
    Session& session = *drafted.session;
    session.begin({});
    session.prefill(model_.encode(sixty_prompts()[4]));
    int deepest = 0;
    for (int cycle = 0; cycle < 30; ++cycle) {
        const TokenTree tree = session.propose();
        std::vector<size_t> count(kMaxDepth + 1);
        for (int depth : depths(tree)) {
            ++count[size_t(depth)];
            deepest = std::max(deepest, depth);
        }
        for (size_t depth = 1; depth < count.size(); ++depth)
            EXPECT_LE(count[depth], depth <= widest.size() ? widest[depth - 1] : 0) << depth;
        session.commit(tree, accept(tree, session.verify(tree)));
    }
    EXPECT_GT(deepest, 2);
}

INSTANTIATE_TEST_SUITE_P(All, CutTrees,
                         testing::Combine(testing::Values("chain", "eagle1", "lookahead"),
                                          testing::Values(0.0f, 0.8f)),
                         [](const auto& test) {
                             return std::string(std::get<0>(test.param)) +
                                    (std::get<1>(test.param) > 0 ? "_sampled" : "_greedy");
                         });

}  // namespace
}  // namespace aerie::test
