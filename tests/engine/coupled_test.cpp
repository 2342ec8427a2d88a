// Coupled proposals beside plain ones at several temperatures: the same texts in fewer cycles; and
// the learned softness of their confidence (drafting.md section 10).
#include <gtest/gtest.h>

#include <cstdlib>

#include "draft/trees/softness.h"
#include "engine/checks.h"

namespace aerie::test {
namespace {

struct Texts {
    std::vector<std::vector<int>> ids;
    double tokens = 0, cycles = 0;
    LearnedSoftness::Losses losses;

    double tau() const { return tokens / cycles; }
};

// Repeats the drafter's learning beside it: equal drafts teach the same.
class Learner {
  public:
    void watch(DraftOptions& draft) {
        draft.on_level = [this](const DraftState&, std::span<Candidate> table, int, int) {
            table_.assign(table.begin(), table.end());
        };
    }
    void begin() { softness_.begin(2048); }
    void saw(Session& session, const TokenTree& tree, const Path& path) {
        softness_.ranked(table_);
        softness_.learn({session.sequence().draft(), tree, {}, path.nodes, path.next, 0});
    }
    void add_to(LearnedSoftness::Losses& all) const {
        all.learned += softness_.losses().learned;
        all.first += softness_.losses().first;
        all.candidates += softness_.losses().candidates;
    }

  private:
    std::vector<Candidate> table_;
    LearnedSoftness softness_;
};

class Coupled : public testing::TestWithParam<std::tuple<const char*, float>> {
  protected:
    static LoadOptions options(const std::string& method) {
        LoadOptions options = bundled_options(DType::Q8_0);
        options.draft.method = method;
        if (method == "eagle3") options.head = models_dir() / "aerie-tiny-eagle3";
        return options;
    }
    static size_t prompts() {
        const char* count = std::getenv("AERIE_TEST_PROMPTS");
        return std::min<size_t>(count ? size_t(std::atoi(count)) : 6, 40);
    }

    // Sixty tokens of each text, or $AERIE_TEST_TOKENS.
    Texts run(Bundled& model, DraftOptions draft, float temperature) {
        Learner learner;
        if (draft.method != "none") learner.watch(draft);
        const auto drafting = model.drafting(draft);
        Session& session = *drafting.session;
        Texts all;
        for (size_t i = 0; i < prompts(); ++i) {
            session.begin(sampling_at(temperature, 500 + i));
            learner.begin();
            std::vector<int> ids;
            const auto take = [&](const ChosenTokens& chosen) {
                ids.insert(ids.end(), chosen.tokens.begin(), chosen.tokens.end());
            };
            take(session.prefill(model.encode(sixty_prompts()[i])));
            while (int(ids.size()) < most_tokens(60)) {
                const TokenTree tree = session.propose();
                const Path path = accept(tree, session.verify(tree));
                take(session.commit(tree, path));
                learner.saw(session, tree, path);
                all.tokens += double(path.nodes.size());
                ++all.cycles;
            }
            learner.add_to(all.losses);
            ids.resize(size_t(most_tokens(60)));
            all.ids.push_back(std::move(ids));
        }
        return all;
    }
};

TEST_P(Coupled, SaysTheSameInFewerCycles) {
    const auto& [method, temperature] = GetParam();
    Bundled model(options(method));
    const Texts want = run(model, draft_options("none"), temperature);
    DraftOptions draft = draft_options(method);
    const Texts coupled = run(model, draft, temperature);
    draft.proposals = Proposals::plain;
    const Texts plain = run(model, draft, temperature);
    EXPECT_EQ(coupled.ids, want.ids);
    EXPECT_EQ(plain.ids, want.ids);
    const LearnedSoftness::Losses& losses = coupled.losses;
    ASSERT_GT(losses.candidates, 100);
    std::printf(
        "%s at %.1f: tau %.3f, plain %.3f (%.2f x); log-loss of a candidate %.4f, as it was %.4f\n",
        method, double(temperature), coupled.tau(), plain.tau(), coupled.tau() / plain.tau(),
        losses.learned / losses.candidates, losses.first / losses.candidates);
    EXPECT_GT(coupled.tau(), (temperature < 1 ? 1 : 1.5) * plain.tau());
    // Over few texts chance plays a part.
    EXPECT_LE(losses.learned, (prompts() < 40 ? 1.02 : 1) * losses.first);
}

INSTANTIATE_TEST_SUITE_P(All, Coupled,
                         testing::Combine(testing::Values("eagle2", "eagle3"),
                                          testing::Values(0.5f, 1.0f, 1.5f)),
                         [](const auto& info) {
                             return std::string(std::get<0>(info.param)) + "_at_" +
                                    std::to_string(int(10 * std::get<1>(info.param)));
                         });

}  // namespace
}  // namespace aerie::test
