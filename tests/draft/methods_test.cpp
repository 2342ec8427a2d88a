// The table of draft methods, and the values that a plan keeps.
#include "draft/methods.h"

#include <gtest/gtest.h>

#include <map>

#include "draft/ngram/suffix_automaton.h"

namespace aerie {
namespace {

// Weights are shared by name, so a name must stand for one way to load them.
TEST(DraftMethods, WeightsHaveNames) {
    std::map<std::string, std::string> needs;
    for (const DraftMethod& method : draft_methods()) {
        EXPECT_EQ(method.weights.empty(), method.load == nullptr) << method.name;
        EXPECT_EQ(method.weights.empty(), method.needs == DraftNeeds::nothing) << method.name;
    }
    EXPECT_EQ(draft_method("eagle2").weights, draft_method("chain").weights);
    EXPECT_EQ(draft_method("grafted").weights, draft_method("model").weights);
    EXPECT_NE(draft_method("best").weights, draft_method("eagle2").weights);
}

TEST(DraftMethods, TheFormerNameOfBestIsUnderstood) {
    EXPECT_EQ(&draft_method("auto"), &draft_method("best"));
}

// A plan is made from temporary values, and outlives them.
TEST(DraftMethods, PlansKeepTheirValues) {
    const DraftPlan plan = [] {
        DraftOptions options;
        options.method = "lookup";
        options.chain_length = 7;
        ModelConfig target;
        target.architecture = "llama, by a name that is long enough for the heap";
        target.vocab = 1000;
        const HeadConfig head{target};
        const std::vector<int32_t> ids = {3, 1, 2};
        DraftPlan made{.options = options, .target = target};
        made.head = head;
        made.head_ids = ids;
        return made;
    }();
    const std::vector<std::string> other(100, "a text that takes the place of what was freed.....");
    EXPECT_EQ(plan.options.method, "lookup");
    EXPECT_EQ(plan.options.chain_length, 7);
    EXPECT_EQ(plan.target.architecture, "llama, by a name that is long enough for the heap");
    EXPECT_EQ(plan.head->vocab, 1000);
    EXPECT_EQ(plan.head_ids, (std::vector<int32_t>{3, 1, 2}));
}

DraftPlan plan_for(int context, int sequences) {
    DraftPlan plan{.options = {}, .target = {}};
    plan.target.vocab = 32000;
    plan.context = context;
    plan.sequences = sequences;
    return plan;
}

TEST(DraftMethods, TellWhatTheyTakeOfTheHost) {
    for (const char* name : {"lookup", "grafted", "best"}) {
        const auto& bytes = draft_method(name).host_bytes;
        ASSERT_TRUE(bytes) << name;
        EXPECT_GT(bytes(plan_for(131072, 1)), size_t(12) << 20) << name;
        EXPECT_EQ(bytes(plan_for(131072, 64)), 64 * bytes(plan_for(131072, 1))) << name;
        EXPECT_GT(bytes(plan_for(1 << 24, 4096)), size_t(1) << 40) << name;
    }
    EXPECT_GT(draft_method("lookahead").host_bytes(plan_for(131072, 8)), size_t(8) << 20);
    EXPECT_FALSE(draft_method("none").host_bytes);
    EXPECT_FALSE(draft_method("eagle2").host_bytes);
}

// The bound of memory holds for texts with the most states and edges for their length.
TEST(SuffixAutomaton, IsNoLargerThanItSays) {
    for (const int tokens : {1, 10, 1000, 20000}) {
        SuffixAutomaton automaton(tokens);
        // "abbb...bc" has the most states and edges for its length.
        for (int i = 0; i < tokens; ++i) automaton.add(i == 0 ? 1 : i + 1 == tokens ? 3 : 2);
        EXPECT_LE(size_t(automaton.states()) * sizeof(SuffixAutomaton::State) +
                      size_t(automaton.edges()) * (sizeof(SuffixAutomaton::Edge) + 2 * sizeof(int)),
                  SuffixAutomaton::size_bytes(tokens))
            << tokens;
    }
}

}  // namespace
}  // namespace aerie
