// Growth that the host decides level by level: it gives the same trees as the device, and
// candidates that a hook changes are drafted as changed.
#include <gtest/gtest.h>

#include "engine/bundled.h"

namespace aerie::test {
namespace {

// The trees of four cycles.
std::vector<TokenTree> trees_of(Bundled& model, const DraftOptions& draft, float temperature) {
    auto drafting = model.drafting(draft);
    Session& session = *drafting.session;
    session.begin(sampling_at(temperature, 3));
    session.prefill(model.encode(sixty_prompts()[1]));
    std::vector<TokenTree> trees;
    for (int cycle = 0; cycle < 4; ++cycle) {
        trees.push_back(session.propose());
        session.commit(trees.back(), accept(trees.back(), session.verify(trees.back())));
    }
    return trees;
}

TEST(HostGrowth, GivesTheTreesOfTheDevice) {
    Bundled model;
    for (const std::string kind : {"chain", "eagle1", "eagle2"})
        for (float temperature : {0.0f, 0.8f}) {
            DraftOptions draft = draft_options(kind);
            const auto device = trees_of(model, draft, temperature);
            int levels = 0;
            draft.on_level = [&](const DraftState&, std::span<Candidate>, int first, int last) {
                EXPECT_LT(first, last);
                ++levels;
            };
            const auto host = trees_of(model, draft, temperature);
            EXPECT_EQ(levels, 4 * (kind == "eagle2" ? 6 : 5));
            for (size_t i = 0; i < host.size(); ++i) {
                EXPECT_EQ(host[i].tokens, device[i].tokens);
                EXPECT_EQ(host[i].parents, device[i].parents);
            }
        }
}

TEST(HostGrowth, DraftsWhatTheHookWrites) {
    Bundled model;
    DraftOptions draft = draft_options("chain");
    draft.chain_length = 3;
    draft.on_level = [](const DraftState&, std::span<Candidate> table, int first, int last) {
        for (int i = first; i < last; ++i) table[size_t(i)].token = 100 + first;
    };
    for (const TokenTree& tree : trees_of(model, draft, 0)) {
        const NodeList drafted(std::span(tree.tokens).subspan(1));
        EXPECT_EQ(drafted, (std::vector<int>{100, 101, 102}));
    }
}

}  // namespace
}  // namespace aerie::test
