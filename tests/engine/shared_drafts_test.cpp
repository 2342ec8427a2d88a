// Trees of several sequences that grow in the same passes are those that grow alone: a fixed tree
// is accepted as often, however many sequences there are.
#include <gtest/gtest.h>

#include <deque>

#include "engine/bundled_heads.h"

namespace aerie::test {
namespace {

struct SharedDrafts {
    const char *name, *method, *head;
    std::optional<TreeShape> tree = {};
    int chain_length = 0;
};

class SharedDraftsTest : public testing::TestWithParam<SharedDrafts> {
  protected:
    // Cycles of each answer if so many share passes.
    std::vector<int> cycles_of(int together) {
        const SharedDrafts& drafts = GetParam();
        LoadOptions options = options_with({drafts.head}, DType::F16, drafts.method);
        options.draft.tree = drafts.tree;
        options.draft.is_published = !drafts.tree && drafts.chain_length == 0;
        if (drafts.chain_length > 0) options.draft.chain_length = drafts.chain_length;
        options.sequences = options.sequences_in_pass = together;
        options.context = 256;
        Bundled model(options);
        const BatchLimits limits = model.limits();
        const auto drafter = model.model().drafter(options.draft, limits);
        const ModelConfig& config = model.target().config();
        KvPool kv(model.backend(), kv_shape(config, limits, drafter->reach()));
        Batch batch(model.backend(), model.target(), kv, *drafter, limits);
        std::vector<int> cycles;
        for (size_t first = 0; first < kAnswers; first += size_t(together)) {
            std::deque<Sequence> sequences;
            std::deque<Generation> answers;
            std::vector<Generation*> round;
            for (int i = 0; i < together; ++i) {
                Request request =
                    model.request(model.encode(sixty_prompts()[first + size_t(i)]), 40);
                request.eos_ids.clear();
                Sequence& sequence =
                    sequences.emplace_back(kv, *drafter, config.vocab, limits.context);
                round.push_back(&answers.emplace_back(batch, sequence, model.tokenizer(), request));
            }
            const auto is_over = [](const Generation& answer) { return answer.has_ended(); };
            while (!std::all_of(answers.begin(), answers.end(), is_over)) step(round);
            for (const Generation& answer : answers) {
                EXPECT_FALSE(answer.error());
                cycles.push_back(answer.result().stats.cycles);
            }
        }
        return cycles;
    }

    static constexpr size_t kAnswers = 8;
};

TEST_P(SharedDraftsTest, AreThoseOfEachAlone) {
    const std::vector<int> alone = cycles_of(1);
    EXPECT_LT(alone[0], 39) << "some drafts are accepted";
    for (const int together : {2, 4, 8}) EXPECT_EQ(cycles_of(together), alone) << together;
}

INSTANTIATE_TEST_SUITE_P(
    All, SharedDraftsTest,
    testing::Values(SharedDrafts{"chain", "chain", "eagle"},
                    SharedDrafts{"eagle1", "eagle1", "eagle"},
                    SharedDrafts{"eagle2", "eagle2", "eagle"},
                    SharedDrafts{"wide_eagle2", "eagle2", "eagle", TreeShape{60, 4, 32}},
                    SharedDrafts{"wide_eagle3", "eagle3", "eagle3", TreeShape{60, 4, 32}},
                    SharedDrafts{"medusa", "medusa", "medusa"},
                    SharedDrafts{"hydra", "hydra", "hydra"},
                    SharedDrafts{"model", "model", "draft"},
                    SharedDrafts{"model_chain", "chain", "draft", {}, 32},
                    SharedDrafts{"hydra_chain", "chain", "hydra"}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace aerie::test
