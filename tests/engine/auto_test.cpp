// Grafted trees and --draft best change no text, and follow texts that are cut or forked.
#include <gtest/gtest.h>

#include <cstdlib>

#include "engine/bundled_heads.h"

namespace aerie::test {
namespace {

int prompt_count(int otherwise) {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    return std::min(count ? std::atoi(count) : otherwise, 40);
}

// Costs at which drafts pay; no clock changes them.
const MeasuredCosts kCheap{{{1, 3e-4}, {64, 6e-4}}, {{1, 1e-5}, {10, 2e-5}}, true};

class AutoTexts : public testing::TestWithParam<std::tuple<DType, float>> {
  protected:
    void SetUp() override { skip_unless_stored(std::get<0>(GetParam())); }

    void expect_plain(const std::vector<std::string>& heads, const std::string& method) const {
        const auto [type, temperature] = GetParam();
        Bundled model(options_with(heads, type, method));
        const auto plain = model.drafting(draft_options("none")),
                   drafted = model.drafting(chosen(method));
        drafted.drafter->cost_aware()->set_costs(kCheap);
        double tokens = 0, cycles = 0;
        for (int i = 0; i < prompt_count(3); ++i) {
            Request request = model.request(model.encode(sixty_prompts()[size_t(i)]),
                                            most_tokens(96), sampling_at(temperature, 1000 + i));
            request.eos_ids.clear();
            const GenerationResult result = model.run(*drafted.session, request);
            EXPECT_EQ(result.ids, model.run(*plain.session, request).ids);
            tokens += result.stats.cycle_tokens;
            cycles += result.stats.cycles;
        }
        std::printf("%s of %zu heads, %s T %.1f: tau %.2f\n", method.c_str(), heads.size(),
                    name(type), double(temperature), tokens / cycles);
        // Prompt lookup alone drafts little within a few tokens.
        const bool is_short = most_tokens(96) < 96;
        EXPECT_GT(tokens / cycles, heads.empty() && is_short ? 0.9 : 1.2);
    }
};

TEST_P(AutoTexts, GraftedAreThose) {
    for (const std::string& head : kHeads) expect_plain({head}, "grafted");
}

TEST_P(AutoTexts, OfAutoAreThose) {
    expect_plain(kHeads, "best");
    expect_plain({"draft"}, "best");
    expect_plain({}, "best");
}

INSTANTIATE_TEST_SUITE_P(All, AutoTexts,
                         testing::Combine(testing::Values(DType::F16, DType::Q8_0, DType::Q4_0),
                                          testing::Values(0.0f, 0.8f)),
                         [](const auto& test) {
                             return std::string(name(std::get<0>(test.param))) +
                                    (std::get<1>(test.param) > 0 ? "_sampled" : "_greedy");
                         });

// With a single head there is nothing to pick: best drafts what grafted does.
TEST(Auto, WithOneHeadIsGrafted) {
    std::vector<int> nodes;
    for (const char* method : {"grafted", "best"}) {
        Bundled model(options_with({"eagle3"}, DType::F16, method));
        const auto drafting = model.drafting(chosen(method));
        drafting.drafter->cost_aware()->set_costs(kCheap);
        const GenerationResult result =
            model.run(*drafting.session, model.request(model.encode(sixty_prompts()[0]), 40));
        nodes.push_back(result.stats.cycle_nodes);
        nodes.push_back(result.stats.cycles);
    }
    EXPECT_EQ(nodes[0], nodes[2]);
    EXPECT_EQ(nodes[1], nodes[3]);
}

// A text that is cut, continued differently and forked, while each drafter that best picks among
// has read another number of its tokens.
TEST(Auto, FollowsTextsThatAreCut) {
    Bundled model(options_with(kHeads, DType::F16, "best"));
    BatchLimits limits = model.limits();
    limits.open_sequences = 3;
    const auto drafting = model.drafting(chosen("best"), limits),
               plain = model.drafting(draft_options("none"), limits);
    drafting.drafter->cost_aware()->set_costs(kCheap);
    const std::vector<int> a = model.encode(sixty_prompts()[0]),
                           b = model.encode(sixty_prompts()[9]);
    const auto run = [&](const Bundled::Drafting& with, const std::vector<int>& prompt) {
        return model.run(*with.session, model.request(prompt, 40)).ids;
    };
    const std::vector<int> first = run(drafting, a);
    EXPECT_EQ(first, run(plain, a));
    std::vector<int> longer = a;
    longer.insert(longer.end(), first.begin(), first.begin() + 11);
    longer.insert(longer.end(), b.begin() + 1, b.end());
    Generation on(drafting.session->batch(), drafting.session->sequence(), model.tokenizer(),
                  model.request(longer, 40));
    while (on.step()) {
    }
    EXPECT_GT(on.result().reused, 0);
    EXPECT_EQ(on.result().ids, run(plain, longer));
    Sequence forked = drafting.session->sequence().fork(int(longer.size()));
    longer.insert(longer.end(), a.begin() + 1, a.end());
    Generation other(drafting.session->batch(), forked, model.tokenizer(),
                     model.request(longer, 40));
    while (other.step()) {
    }
    EXPECT_EQ(other.result().ids, run(plain, longer));
}

}  // namespace
}  // namespace aerie::test
