// Speculation changes nothing: every drafter's ids equal plain decoding's, for every type and
// temperature, with random trees, with penalties, and up to the very end of the context.
#include <gtest/gtest.h>

#include <random>

#include "engine/checks.h"
#include "engine/reach.h"

namespace aerie::test {
namespace {

constexpr int kMaxTokens = 128;

int prompt_count() {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    return count ? std::atoi(count) : 4;
}

struct Case {
    DType type, draft_type;
    float temperature;
    Reach reach = Reach::whole;
};

std::string name_of(const Case& one) {
    return std::string(name(one.type)) +
           (one.draft_type == one.type ? "" : "_by_" + std::string(name(one.draft_type))) +
           (one.reach == Reach::whole ? "" : "_" + std::string(name(one.reach))) +
           (one.temperature > 0 ? "_sampled" : "_greedy");
}

class Lossless : public testing::TestWithParam<Case> {
  protected:
    void SetUp() override {
        skip_unless_stored(GetParam().type);
        if (IsSkipped()) return;
        const LoadOptions options = bundled_options(GetParam().type, GetParam().draft_type);
        ModelFiles files = ModelFiles::open(options);
        change(files, GetParam().reach);
        model_ = std::make_unique<Bundled>(std::move(files), options, open_device(options.device));
        prompts_ = sixty_prompts();
        ASSERT_EQ(prompts_.size(), 60u);
        prompts_.resize(size_t(prompt_count()));
    }

    std::vector<std::vector<int>> run(const DraftOptions& draft, Sampling sampling, int tokens) {
        auto drafting = model_->drafting(draft);
        std::vector<std::vector<int>> ids;
        double emitted = 0, cycles = 0;
        for (size_t i = 0; i < prompts_.size(); ++i) {
            sampling.seed = 1000 + i;
            Request request = model_->request(model_->encode(prompts_[i]), tokens, sampling);
            request.eos_ids.clear();  // every text has its full length
            const GenerationResult result = model_->run(*drafting.session, request);
            EXPECT_EQ(result.ids.size(), size_t(tokens));
            emitted += result.stats.cycle_tokens;
            cycles += result.stats.cycles;
            ids.push_back(result.ids);
        }
        tau_ = emitted / cycles;
        return ids;
    }

    void expect_equal_to_plain(const std::vector<DraftOptions>& drafters, const Sampling& sampling,
                               int tokens) {
        tokens = std::min(tokens, most_tokens(kMaxTokens));
        const auto plain = run(draft_options("none"), sampling, tokens);
        for (const DraftOptions& draft : drafters) {
            const auto drafted = run(draft, sampling, tokens);
            int different = 0;
            for (size_t i = 0; i < plain.size(); ++i) different += plain[i] != drafted[i];
            std::printf("%s drafter %s: %zu prompts x %d tokens, tau %.3f, %d differ\n",
                        name_of(GetParam()).c_str(), draft.method.c_str(), plain.size(), tokens,
                        tau_, different);
            EXPECT_EQ(different, 0);
        }
    }

    std::unique_ptr<Bundled> model_;
    std::vector<std::string> prompts_;
    double tau_ = 0;
};

TEST_P(Lossless, EveryDrafter) {
    std::vector<DraftOptions> drafters;
    for (const std::string& method : bundled_methods()) drafters.push_back(draft_options(method));
    expect_equal_to_plain(drafters, sampling_at(GetParam().temperature, 0), 128);
}

TEST_P(Lossless, RandomTreeEachCycle) {
    std::mt19937 random(7);
    DraftOptions draft = draft_options("eagle2");
    draft.tree = {kMaxNodes, 12, 16};
    draft.shape_policy = [&random] {
        const auto draw = [&](int low, int high) {
            return std::uniform_int_distribution<int>(low, high)(random);
        };
        return TreeShape{draw(2, kMaxNodes), draw(1, 12), draw(1, 16)};
    };
    expect_equal_to_plain({draft}, sampling_at(GetParam().temperature, 0), 64);
}

// Costs at which drafting pays, then drafts that are never right, then right ones again: trees of
// all sizes and bare roots, in one session.
TEST_P(Lossless, AutoTreeThatFallsBackAndResumes) {
    prompts_.resize(std::min<size_t>(prompts_.size(), prompt_count() >= 60 ? 8 : 2));
    bool ruin = false;
    DraftOptions draft = auto_options();
    draft.on_level = [&](const DraftState&, std::span<Candidate> table, int first, int last) {
        for (int i = first; ruin && i < last; ++i) table[size_t(i)].token = 7 + i % 10;
    };
    // The costs are frozen: the clock of a busy machine decides nothing here.
    const MeasuredCosts cheap{{{1, 3e-4}, {64, 6e-4}}, {{1, 1e-5}, {10, 2e-5}}, true};
    const MeasuredCosts dear{{{1, 3e-4}, {64, 6e-4}}, {{1, 1e-4}, {10, 2e-4}}, true};
    auto none = model_->drafting(draft_options("none")), chosen = model_->drafting(draft);
    for (size_t i = 0; i < prompts_.size(); ++i)
        for (int part : {0, 1, 2}) {
            ruin = part == 1;
            chosen.drafter->cost_aware()->set_costs(ruin ? dear : cheap);
            Request request = model_->request(model_->encode(prompts_[i]), 96,
                                              sampling_at(GetParam().temperature, 1000 + i));
            request.eos_ids.clear();
            const GenerationResult got = model_->run(*chosen.session, request);
            EXPECT_EQ(got.ids, model_->run(*none.session, request).ids);
            std::printf("part %d: %d cycles of %.1f nodes, %.0f%% plain, tau %.2f\n", part,
                        got.stats.cycles, got.stats.mean_nodes(), 100 * got.stats.plain_share(),
                        got.stats.tau());
            if (part == 1)
                EXPECT_GT(got.stats.plain_share(), 0.3);
            else
                EXPECT_GT(got.stats.cycle_nodes, got.stats.cycles);
        }
}

// With frozen costs the clock has no effect: the default mode gives the same trees on every run.
TEST_P(Lossless, AutoTreeIsReproducible) {
    const MeasuredCosts costs{{{1, 3e-4}, {8, 5e-4}, {64, 2e-3}}, {{1, 3e-5}, {10, 6e-5}}, true};
    const Request request =
        model_->request(model_->encode(prompts_[0]), std::min(most_tokens(kMaxTokens), 64),
                        sampling_at(GetParam().temperature, 3));
    std::vector<GenerationResult> runs;
    for (int i = 0; i < 2; ++i) {
        auto chosen = model_->drafting(auto_options());
        chosen.drafter->cost_aware()->set_costs(costs);
        runs.push_back(model_->run(*chosen.session, request));
    }
    EXPECT_EQ(runs[0].ids, runs[1].ids);
    EXPECT_EQ(runs[0].stats.cycles, runs[1].stats.cycles);
    EXPECT_EQ(runs[0].stats.cycle_nodes, runs[1].stats.cycle_nodes);
    EXPECT_EQ(runs[0].stats.accepted_by_depth, runs[1].stats.accepted_by_depth);
    EXPECT_GT(runs[0].stats.cycle_nodes, runs[0].stats.cycles);
}

TEST_P(Lossless, AblationsAndPlainProposals) {
    DraftOptions no_value = draft_options("eagle2"), plain = no_value;
    no_value.use_value = false;
    DraftOptions no_rerank = draft_options("eagle2");
    no_rerank.rerank = false;
    plain.proposals = Proposals::plain;
    expect_equal_to_plain({no_value, no_rerank, plain}, sampling_at(GetParam().temperature, 0), 32);
}

TEST_P(Lossless, WithPenaltiesAndFilters) {
    Sampling sampling = sampling_at(GetParam().temperature, 0);
    sampling.penalties = {1.3f, 0.2f, 0.4f};
    sampling.filters.top_k = 50;
    sampling.filters.top_p = 0.95f;
    sampling.filters.min_p = 0.02f;
    std::vector<DraftOptions> drafters;
    for (const std::string& method : bundled_methods()) drafters.push_back(draft_options(method));
    drafters.push_back(auto_options());
    expect_equal_to_plain(drafters, sampling, 48);
}

TEST_P(Lossless, ToTheEndOfTheContext) {
    // Contexts of every length around a page border: trees at the very end must fit.
    const int reach = prompt_count() >= 60 ? 8 : 1;
    for (int context = 128 - reach; context <= 128 + reach; ++context) {
        BatchLimits limits = model_->limits();
        limits.context = context;
        Request request =
            model_->request(model_->encode(prompts_[size_t(context) % prompts_.size()]), -1,
                            sampling_at(GetParam().temperature, 5));
        request.eos_ids.clear();
        auto none = model_->drafting(draft_options("none"), limits);
        const GenerationResult plain = model_->run(*none.session, request);
        EXPECT_EQ(int(plain.ids.size() + request.prompt.size()), context);
        EXPECT_EQ(plain.finish, FinishReason::length);
        for (const std::string& method : bundled_methods()) {
            auto drafting = model_->drafting(draft_options(method), limits);
            EXPECT_EQ(model_->run(*drafting.session, request).ids, plain.ids);
        }
        auto chosen = model_->drafting(auto_options(), limits);
        EXPECT_EQ(model_->run(*chosen.session, request).ids, plain.ids);
    }
}

INSTANTIATE_TEST_SUITE_P(
    Types, Lossless,
    testing::Values(Case{DType::F32, DType::F32, 0}, Case{DType::F32, DType::F32, 0.8f},
                    Case{DType::F16, DType::F16, 0}, Case{DType::F16, DType::F16, 0.8f},
                    Case{DType::Q8_0, DType::Q8_0, 0}, Case{DType::Q8_0, DType::Q4_0, 0.8f},
                    Case{DType::Q4_0, DType::Q8_0, 0}, Case{DType::Q4_0, DType::Q4_0, 0.8f}),
    [](const auto& info) { return name_of(info.param); });

// Target and head in K types.
class LosslessKTypes : public Lossless {};

TEST_P(LosslessKTypes, EveryDrafter) {
    std::vector<DraftOptions> drafters;
    for (const std::string& method : bundled_methods()) drafters.push_back(draft_options(method));
    drafters.push_back(auto_options());
    expect_equal_to_plain(drafters, sampling_at(GetParam().temperature, 0), kMaxTokens);
}

std::vector<Case> k_cases() {
    std::vector<Case> cases;
    for (DType type : {DType::Q4_K, DType::Q5_K, DType::Q6_K})
        for (float temperature : {0.0f, 0.8f}) cases.push_back({type, type, temperature});
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Types, LosslessKTypes, testing::ValuesIn(k_cases()),
                         [](const auto& info) { return name_of(info.param); });

// The same with windows and with scaled positions.
class LosslessReaches : public Lossless {};

TEST_P(LosslessReaches, EveryDrafter) {
    std::vector<DraftOptions> drafters;
    for (const std::string kind : {"lookup", "chain", "eagle2"})
        drafters.push_back(draft_options(kind));
    drafters.push_back(auto_options());
    expect_equal_to_plain(drafters, sampling_at(GetParam().temperature, 0), kMaxTokens);
}

std::vector<Case> reach_cases() {
    std::vector<Case> cases;
    for (Reach reach : {Reach::windows, Reach::yarn})
        for (DType type : {DType::F16, DType::Q8_0, DType::Q4_0})
            for (float temperature : {0.0f, 0.8f})
                cases.push_back({type, type, temperature, reach});
    return cases;
}

INSTANTIATE_TEST_SUITE_P(Types, LosslessReaches, testing::ValuesIn(reach_cases()),
                         [](const auto& info) { return name_of(info.param); });

// Every type of the head beside every type of the target, drafted by two threads, against plain
// decoding by one.
TEST(Mixes, OfTypesAndThreads) {
    const std::vector<std::string> prompts = sixty_prompts();
    const int count = std::max(1, prompt_count() / 4);
    const int tokens = prompt_count() >= 60 ? 128 : 48;
    const auto run = [&](DType type, DType draft_type, int threads, const std::string kind) {
        LoadOptions options = bundled_options(type, draft_type);
        options.threads = threads;
        Bundled model(options);
        auto drafting = model.drafting(draft_options(kind));
        std::vector<std::vector<int>> ids;
        for (int i = 0; i < count; ++i) {
            Request request = model.request(model.encode(prompts[size_t(4 * i)]), tokens,
                                            sampling_at(i % 2 ? 0.8f : 0, uint64_t(i)));
            request.eos_ids.clear();
            ids.push_back(model.run(*drafting.session, request).ids);
        }
        return ids;
    };
    constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0};
    for (DType type : kTypes) {
        const auto plain = run(type, type, 1, "none");
        for (DType draft_type : kTypes)
            EXPECT_EQ(run(type, draft_type, 2, "eagle2"), plain)
                << name(type) << " drafted in " << name(draft_type);
    }
}

// Texts that end at position 700, eleven pages on; on slow devices most of it is the prompt.
TEST(LongTexts, EqualPlainAtPosition700) {
    constexpr int kEnd = 700;
    const int tokens = std::min(most_tokens(600), 600);
    std::vector<int> prompt = long_text(8);
    ASSERT_GT(prompt.size(), size_t(kEnd));
    prompt.resize(size_t(kEnd - tokens));
    Bundled model(bundled_options(DType::Q8_0));
    auto none = model.drafting(draft_options("none"));
    for (float temperature : {0.0f, 0.8f}) {
        Request request = model.request(prompt, tokens, sampling_at(temperature, 4));
        request.eos_ids.clear();
        const std::vector<int> plain = model.run(*none.session, request).ids;
        EXPECT_EQ(plain.size(), size_t(tokens));
        for (const DraftOptions& draft : {draft_options("eagle2"), auto_options()}) {
            auto drafting = model.drafting(draft);
            EXPECT_EQ(model.run(*drafting.session, request).ids, plain);
        }
    }
}

// Coupled proposals raise tau at T = 1 and change no id (drafting.md section 10).
TEST(Coupled, RaisesTauAtTemperatureOne) {
    Bundled model(bundled_options(DType::F32));
    const std::vector<std::string> prompts = sixty_prompts();
    double tau[2] = {};
    int different = 0;
    const bool full = prompt_count() >= 60;
    const int seeds = full ? 5 : 1, tokens = full ? 128 : 48;
    for (Proposals proposals : {Proposals::plain, Proposals::coupled}) {
        DraftOptions draft = draft_options("eagle2");
        draft.proposals = proposals;
        auto drafting = model.drafting(draft), none = model.drafting(draft_options("none"));
        double emitted = 0, cycles = 0;
        for (int prompt = 0; prompt < 40; prompt += 4)
            for (int seed = 0; seed < seeds; ++seed) {
                const Request request = model.request(model.encode(prompts[size_t(prompt)]), tokens,
                                                      sampling_at(1, 17 + uint64_t(seed)));
                const GenerationResult got = model.run(*drafting.session, request);
                different += got.ids != model.run(*none.session, request).ids;
                emitted += got.stats.cycle_tokens;
                cycles += got.stats.cycles;
            }
        tau[proposals == Proposals::coupled] = emitted / cycles;
    }
    std::printf(
        "T=1, 10 prompts x %d seeds x %d tokens: tau plain %.3f, coupled %.3f (%.2fx), %d differ\n",
        seeds, tokens, tau[0], tau[1], tau[1] / tau[0], different);
    EXPECT_EQ(different, 0);
    EXPECT_GE(tau[1], 1.6 * tau[0]);
}

}  // namespace
}  // namespace aerie::test
