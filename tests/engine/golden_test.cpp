// Results of an independent PyTorch program (tests/data/README.md): ids, logits, first trees, tau.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "backend/backend.h"
#include "engine/checks.h"
#include "engine/first_trees.h"

namespace aerie::test {
namespace {

Bundled& bundled() {
    static Bundled model(bundled_options(DType::F32));
    return model;
}

TEST(Golden, PromptIds) {
    const Json greedy = read_data("greedy.json");
    for (const Json& entry : *greedy.array())
        EXPECT_EQ(bundled().encode(*entry.find("prompt")->string()),
                  ints(*entry.find("prompt_ids")));
}

TEST(Golden, Logits) {
    auto drafting = bundled().drafting(draft_options("eagle2"));
    Session& session = *drafting.session;
    double worst = 0, worst_feature = 0;
    const Json golden = read_data("logits.json");
    for (const Json& entry : *golden.array()) {
        const std::vector<int> prompt = ints(*entry.find("prompt_ids"));
        session.begin({});
        session.prefill(prompt);
        std::vector<float> logits(size_t(session.logits().cols));
        bundled().backend().read(session.logits().row_range(0, 1), logits.data());
        for (const auto& [ids, values] : {std::pair{"top_ids", "top"}, {"probe_ids", "probe"}}) {
            const std::vector<int> tokens = ints(*entry.find(ids));
            for (size_t i = 0; i < tokens.size(); ++i)
                worst = std::max(worst, std::abs(logits[size_t(tokens[i])] -
                                                 entry.find(values)->array()->at(i).number()));
        }
        const int last = (int(prompt.size()) - 1) % kPrefillRows;
        std::vector<float> feature(size_t(session.features().cols));
        bundled().backend().read(session.features().row_range(last, 1), feature.data());
        const Json::Array& want = *entry.find("feature")->array();
        for (size_t i = 0; i < want.size(); ++i)
            worst_feature = std::max(worst_feature, std::abs(feature[i] - want[i].number()));
    }
    std::printf("max abs error: logits %.2e, features %.2e\n", worst, worst_feature);
    EXPECT_LE(worst, 2e-3);
    EXPECT_LE(worst_feature, 2e-3);
}

TEST(Golden, FirstTrees) {
    std::vector<Candidate> table;
    DraftOptions draft = draft_options("eagle2");
    draft.on_level = [&](const DraftState&, std::span<Candidate> all, int, int) {
        table.assign(all.begin(), all.end());
    };
    auto drafting = bundled().drafting(draft);
    EXPECT_EQ(first_trees_finding(*drafting.session, "eagle2", table), "");
}

// Runs every golden prompt. The finding compares the reference's passes text by text; here its tau
// over all texts is compared, too.
void check_greedy(const char* method, const DraftOptions& options) {
    const GoldenRun run = run_golden(bundled(), method, options);
    std::printf("%s: %d of %d prompts agree entirely\n", method, run.agree, run.texts);
    EXPECT_EQ(golden_finding(run), "");
    if (options.method == "none") return;
    const Json golden = read_data("tau.json");
    for (const auto& [group, tau] : run.all) {
        const double want = golden.find(method)->find(group)->number();
        std::printf("  %-6s tau %.4f, reference %.4f (%+.2f %%)\n", group.c_str(), tau.value(),
                    want, 100 * (tau.value() / want - 1));
        EXPECT_NEAR(tau.value() / want, 1, kTauTolerance) << method << " " << group;
    }
}

TEST(Golden, GreedyNone) {
    check_greedy("none", draft_options("none"));
}
TEST(Golden, GreedyChain) {
    check_greedy("chain", draft_options("chain"));
}
TEST(Golden, GreedyEagle1) {
    check_greedy("eagle1", draft_options("eagle1"));
}
TEST(Golden, GreedyEagle2) {
    check_greedy("eagle2", draft_options("eagle2"));
}

// tau over all golden prompts with EAGLE-2, with a head of its own weight type.
double tau_of_head(DType draft_type) {
    Bundled model(bundled_options(DType::F32, draft_type));
    auto drafting = model.drafting(draft_options("eagle2"));
    Tau total;
    const Json greedy = read_data("greedy.json");
    for (const Json& entry : *greedy.array()) {
        const GenerationResult got =
            model.run(*drafting.session, model.request(ints(*entry.find("prompt_ids")), 128));
        total.tokens += got.stats.cycle_tokens;
        total.cycles += got.stats.cycles;
    }
    return total.value();
}

TEST(Golden, QuantisedHeadsKeepTau) {
    const double exact = tau_of_head(DType::F32);
    for (const auto& [type, loss] : {std::pair(DType::Q8_0, 0.01), {DType::Q4_0, 0.08}}) {
        const double tau = tau_of_head(type);
        std::printf("tau %.4f with a head in f32, %.4f in %s (%+.2f %%)\n", exact, tau, name(type),
                    100 * (tau / exact - 1));
        EXPECT_GE(tau, (1 - loss) * exact);
    }
}

// The reference's tau at temperature 1, over ten prompts with a seed each. Its noise is not ours,
// and its softness was 0.5 and 1 where ours is 0.7, so the tolerance is statistical.
TEST(Golden, SamplingTau) {
    const Json golden = read_data("sampling.json");
    const double plain = golden.find("eagle2/plain")->number();
    const double coupled = (golden.find("eagle2/coupled/softness 0.5")->number() +
                            golden.find("eagle2/coupled/softness 1.0")->number()) /
                           2;
    const std::vector<std::string> prompts = sixty_prompts();
    for (const auto& [proposals, want] :
         {std::pair(Proposals::plain, plain), {Proposals::coupled, coupled}}) {
        DraftOptions draft = draft_options("eagle2");
        draft.proposals = proposals;
        auto drafting = bundled().drafting(draft);
        Tau total;
        for (size_t i = 0; i < 40; i += 4) {
            const GenerationResult got = bundled().run(
                *drafting.session,
                bundled().request(bundled().encode(prompts[i]), 128, sampling_at(1, i)));
            total.tokens += got.stats.cycle_tokens;
            total.cycles += got.stats.cycles;
        }
        std::printf("T = 1, %s proposals: tau %.3f, reference %.3f (%+.1f %%)\n",
                    proposals == Proposals::plain ? "plain" : "coupled", total.value(), want,
                    100 * (total.value() / want - 1));
        EXPECT_NEAR(total.value() / want, 1, 0.1);
    }
}

}  // namespace
}  // namespace aerie::test
