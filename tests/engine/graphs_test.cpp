// The number of recordings that a conversation makes on a device that records passes, as GPUs do:
// few, and no new ones once every kind of cycle has occurred.
#include <gtest/gtest.h>

#include "engine/bundled.h"
#include "engine/costed_backend.h"
#include "engine/mixed_prompts.h"

namespace aerie::test {
namespace {

// Costs like a GPU's: more rows cost little.
constexpr CostPoint kGpuRows[] = {{1, 1.0}, {8, 1.02}, {16, 1.1}, {32, 1.2}, {64, 1.4}};

class Graphs : public testing::TestWithParam<const char*> {};

TEST_P(Graphs, OfAMixedConversationAreFew) {
    constexpr int kTokens = 2000, kAnswer = 100;
    LoadOptions options = bundled_options(DType::Q8_0);
    auto made = std::make_unique<CostedBackend>(open_device("cpu", {2}), kGpuRows);
    const CostedBackend& device = *made;
    Bundled model(options, std::move(made));
    DraftOptions draft;
    draft.method = GetParam();
    draft.clock = [&device] { return device.seconds(); };
    BatchLimits limits = model.limits();
    limits.clock = draft.clock;
    auto drafting = model.drafting(draft, limits);
    if (CostAware* costs = drafting.drafter->cost_aware())
        costs->set_costs({.verify = {std::begin(kGpuRows), std::end(kGpuRows)},
                          .level = {{1, 0.05}, {10, 0.06}},
                          .frozen = true});
    const auto plain = model.drafting(draft_options("none"));
    const std::vector<std::string> prompts = mixed_prompts();
    std::vector<long> recordings;
    double tokens = 0, cycles = 0;
    for (int i = 0; i < kTokens / kAnswer; ++i) {
        Request request = model.request(model.encode(prompts[size_t(i)]), kAnswer,
                                        sampling_at(i % 2 ? 0.8f : 0.0f, uint64_t(i)));
        request.eos_ids.clear();
        const GenerationResult answer = model.run(*drafting.session, request);
        tokens += answer.stats.cycle_tokens;
        cycles += answer.stats.cycles;
        recordings.push_back(device.recordings());
        if (i >= 4) continue;
        EXPECT_EQ(answer.ids, model.run(*plain.session, request).ids) << "answer " << i;
    }
    EXPECT_LE(recordings.back(), 24);
    EXPECT_EQ(recordings.back(), recordings[recordings.size() / 2]);
    const bool drafts = GetParam() != std::string("none");
    EXPECT_GT(tokens / cycles, drafts ? 1.2 : 0.9);
}

INSTANTIATE_TEST_SUITE_P(Methods, Graphs, testing::Values("none", "lookup", "eagle2", "grafted"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace aerie::test
