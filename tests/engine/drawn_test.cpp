// Drafts that are drawn (--accept p/q) on the bundled models: how many are accepted, what is put
// out, and what the text depends on.
#include <gtest/gtest.h>

#include <map>

#include "engine/bundled.h"
#include "engine/g_test.h"

namespace aerie::test {
namespace {

struct Drawing {
    const char *name, *head, *method;
};
constexpr Drawing kDrawings[] = {{"chain", "aerie-tiny-eagle", "chain"},
                                 {"eagle1", "aerie-tiny-eagle", "eagle1"},
                                 {"chain of EAGLE-3", "aerie-tiny-eagle3", "chain"},
                                 {"eagle1 of EAGLE-3", "aerie-tiny-eagle3", "eagle1"}};

LoadOptions options_of(const Drawing& drawing) {
    LoadOptions options = bundled_options(DType::F32);
    options.head = models_dir() / drawing.head;
    options.draft.method = drawing.method;
    return options;
}

Sampling with_everything(uint64_t seed) {
    Sampling sampling = sampling_at(0.9f, seed);
    sampling.filters.top_k = 3;
    sampling.filters.top_p = 0.95f;
    sampling.filters.min_p = 0.01f;
    sampling.penalties = {1.1f, 0.1f, 0.1f};
    return sampling;
}

TEST(Drawn, AcceptsManyAndRepeatsItself) {
    const std::vector<std::string> prompts = sixty_prompts();
    for (const Drawing& drawing : kDrawings) {
        Bundled model(options_of(drawing));
        auto drafting = model.drafting(drawn_options(drawing.method));
        for (const Sampling& sampling :
             {sampling_at(0.8f, 5), sampling_at(1, 5), with_everything(5)}) {
            int tokens = 0, cycles = 0;
            for (size_t i = 0; i < 4; ++i) {
                const Request request = model.request(model.encode(prompts[i]), 48, sampling);
                const GenerationResult result = model.run(*drafting.session, request);
                tokens += result.stats.cycle_tokens;
                cycles += result.stats.cycles;
                if (i > 0) continue;
                EXPECT_EQ(model.run(*drafting.session, request).ids, result.ids);
                Request other = request;
                ++other.answer.sampling.seed;
                EXPECT_NE(model.run(*drafting.session, other).ids, result.ids);
            }
            std::printf("%s, T %.1f, top-k %d: tau %.2f\n", drawing.name,
                        double(sampling.filters.temperature), sampling.filters.top_k,
                        double(tokens) / cycles);
            EXPECT_GT(double(tokens) / cycles, 1.5);
        }
    }
}

TEST(Drawn, AtTemperatureZeroTheTextIsPlain) {
    for (const Drawing& drawing : kDrawings) {
        Bundled model(options_of(drawing));
        auto drafting = model.drafting(drawn_options(drawing.method));
        auto none = model.drafting(draft_options("none"));
        for (size_t i = 0; i < 3; ++i) {
            const Request request = model.request(model.encode(sixty_prompts()[i]), 48);
            const GenerationResult plain = model.run(*none.session, request);
            const GenerationResult drafted = model.run(*drafting.session, request);
            EXPECT_EQ(drafted.ids, plain.ids);
            EXPECT_LT(drafted.stats.cycles, plain.stats.cycles);
        }
    }
}

// If fewer tokens can be drawn than the tree has ranks, the tree has fewer nodes.
TEST(Drawn, TreesHaveOnlyWhatCanBeDrawn) {
    Bundled model(options_of(kDrawings[1]));
    auto drafting = model.drafting(drawn_options("eagle1"));
    Session& session = *drafting.session;
    for (const int kept : {1, 2, 3, 0}) {
        Sampling sampling = sampling_at(1, 3);
        sampling.filters.top_k = kept;
        session.begin(sampling);
        session.prefill(model.encode(sixty_prompts()[0]));
        for (int cycle = 0; cycle < 6; ++cycle) {
            const TokenTree tree = session.propose();
            std::map<int, std::vector<int>> children;
            for (int node = 1; node < tree.size(); ++node)
                children[tree.parents[size_t(node)]].push_back(tree.tokens[size_t(node)]);
            for (auto& [parent, tokens] : children) {
                EXPECT_LE(int(tokens.size()), kept == 0 ? 4 : kept);
                std::sort(tokens.begin(), tokens.end());
                EXPECT_EQ(std::unique(tokens.begin(), tokens.end()), tokens.end());
            }
            EXPECT_EQ(tree.size(), kept == 1 ? 6 : kept == 0 ? 26 : tree.size());
            session.commit(tree, accept(tree, session.verify(tree)));
        }
    }
}

// A tree that was not proposed was not drawn either, so the choices after it are those of plain
// decoding.
TEST(Drawn, AnotherTreeIsNoDraw) {
    Bundled model(options_of(kDrawings[0]));
    auto drafting = model.drafting(drawn_options("chain"));
    auto none = model.drafting(draft_options("none"));
    std::vector<int> next;
    for (Session* session : {drafting.session.get(), none.session.get()}) {
        session->begin(sampling_at(1, 8));
        session->prefill(model.encode(sixty_prompts()[2]));
        session->propose();
        const TokenTree root(session->sequence().pending());
        next.push_back(session->verify(root)[0]);
    }
    EXPECT_EQ(next[0], next[1]);
}

// Frequencies of each of the first tokens, compared with those of plain decoding.
TEST(Drawn, TokensAreAsFrequentAsInPlainTexts) {
    constexpr int kRuns = 200, kTokens = 4;
    Bundled model(options_of(kDrawings[1]));
    const std::vector<int> prompt = model.encode(sixty_prompts()[0]);
    std::vector<std::map<int, std::array<int, 2>>> counts(kTokens);
    const DraftOptions drafts[] = {draft_options("none"), drawn_options("eagle1")};
    for (size_t which = 0; which < 2; ++which) {
        auto drafting = model.drafting(drafts[which]);
        for (int run = 0; run < kRuns; ++run) {
            const uint64_t seed = uint64_t(run) * 2 + which;  // different texts in each half
            Request request = model.request(prompt, kTokens, sampling_at(0.8f, seed));
            request.eos_ids.clear();
            const std::vector<int> ids = model.run(*drafting.session, request).ids;
            for (size_t i = 0; i < kTokens; ++i) ++counts[i][ids[i]][which];
        }
    }
    for (size_t i = 0; i < kTokens; ++i) {
        // A G-test of two samples; rare tokens share a cell.
        double statistic = 0, cells = 0;
        std::array<int, 2> rare = {};
        const auto add = [&](const std::array<int, 2>& cell) {
            const double half = (cell[0] + cell[1]) / 2.0;
            for (int count : cell)
                if (count > 0) statistic += 2 * count * std::log(count / half);
            ++cells;
        };
        for (const auto& [token, cell] : counts[i])
            if (cell[0] + cell[1] >= 10)
                add(cell);
            else
                rare = {rare[0] + cell[0], rare[1] + cell[1]};
        if (rare[0] + rare[1] > 0) add(rare);
        const double p = cells > 1 ? chi_square_tail(statistic, cells - 1) : 1;
        std::printf("token %zu: %.0f cells, p = %.3g\n", i, cells, p);
        EXPECT_GT(p, 1e-4);
    }
}

}  // namespace
}  // namespace aerie::test
