// Grafted trees and --draft auto: they change no text, and auto is never far from the best of what
// it picks among.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <sstream>

#include "engine/checks.h"
#include "engine/costed_backend.h"
#include "engine/mixed_prompts.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

int prompt_count(int otherwise) {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    return std::min(count ? std::atoi(count) : otherwise, 40);
}

fs::path head_path(const std::string& end) {
    return models_dir() / ("aerie-tiny-" + end + (end == "draft" ? ".gguf" : ""));
}
const std::vector<std::string> kHeads = {"eagle", "eagle3", "medusa", "hydra", "draft"};

LoadOptions options_with(const std::vector<std::string>& heads, DType type,
                         const std::string& method) {
    LoadOptions options = bundled_options(type);
    options.head.clear();
    options.draft.method = method;
    for (const std::string& head : heads)
        if (options.head.empty())
            options.head = head_path(head);
        else
            options.more_heads.push_back(head_path(head));
    return options;
}

DraftOptions chosen(const std::string& method) {
    DraftOptions options;
    options.method = method;
    return options;
}

// Costs that make drafts pay, which no clock moves.
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
        EXPECT_GT(tokens / cycles, 1.2);
    }
};

TEST_P(AutoTexts, GraftedAreThose) {
    for (const std::string& head : kHeads) expect_plain({head}, "grafted");
}

TEST_P(AutoTexts, OfAutoAreThose) {
    expect_plain(kHeads, "auto");
    expect_plain({"draft"}, "auto");
    expect_plain({}, "auto");
}

INSTANTIATE_TEST_SUITE_P(All, AutoTexts,
                         testing::Combine(testing::Values(DType::F16, DType::Q8_0, DType::Q4_0),
                                          testing::Values(0.0f, 0.8f)),
                         [](const auto& test) {
                             return std::string(name(std::get<0>(test.param))) +
                                    (std::get<1>(test.param) > 0 ? "_sampled" : "_greedy");
                         });

// A text that is cut, goes on otherwise and is forked, with every part of auto at another place.
TEST(Auto, FollowsTextsThatAreCut) {
    Bundled model(options_with(kHeads, DType::F16, "auto"));
    BatchLimits limits = model.limits();
    limits.kept = 3;
    const auto drafting = model.drafting(chosen("auto"), limits),
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
    Generation on(drafting.session->batch(), drafting.session->text(), model.tokenizer(),
                  model.request(longer, 40));
    while (on.step()) {
    }
    EXPECT_GT(on.result().reused, 0);
    EXPECT_EQ(on.result().ids, run(plain, longer));
    Sequence forked = drafting.session->text().fork(int(longer.size()));
    longer.insert(longer.end(), a.begin() + 1, a.end());
    Generation other(drafting.session->batch(), forked, model.tokenizer(),
                     model.request(longer, 40));
    while (other.step()) {
    }
    EXPECT_EQ(other.result().ids, run(plain, longer));
}

int answer_tokens() {
    return most_tokens(96);
}

// Seconds of each prompt's answer, drafted in this way, by the device's own clock.
struct Timed {
    std::vector<double> seconds, first_half;
    double total = 0, wall = 0, tau = 0;
};

class RecordedCosts : public testing::TestWithParam<float> {
  protected:
    Timed run(const std::vector<std::string>& heads, const std::string& method) {
        const LoadOptions options = options_with(heads, DType::Q8_0, method);
        auto made = std::make_unique<CostedBackend>(open_device("cpu", {2}));
        const CostedBackend& device = *made;
        Bundled model(options, std::move(made));
        DraftOptions draft = chosen(method);
        const Clock clock = [&device] { return device.seconds(); };
        draft.clock = clock;
        BatchLimits limits = model.limits();
        limits.clock = clock;
        auto drafting = model.drafting(draft, limits);
        if (CostAware* costs = drafting.drafter->cost_aware())
            costs->set_costs(recorded(*drafting.session, *costs));
        Timed timed;
        double tokens = 0, cycles = 0;
        const std::vector<std::string> prompts = mixed_prompts();
        const double start = steady_seconds();
        for (size_t i = 0; i < prompts.size(); ++i) {
            Request request = model.request(model.encode(prompts[i]), answer_tokens(),
                                            sampling_at(GetParam(), 100 + i));
            request.eos_ids.clear();
            Generation generation(*drafting.session, model.tokenizer(), request);
            generation.step();  // the prompt is read alike by all
            const double before = device.seconds();
            double half = 0;
            while (generation.step())
                if (int(generation.result().ids.size()) <= answer_tokens() / 2)
                    half = device.seconds() - before;
            timed.seconds.push_back(device.seconds() - before);
            timed.first_half.push_back(half);
            timed.total += timed.seconds.back();
            tokens += generation.result().stats.cycle_tokens;
            cycles += generation.result().stats.cycles;
            if (texts_.size() == i) texts_.push_back(generation.result().ids);
            EXPECT_EQ(generation.result().ids, texts_[i]) << method << ", prompt " << i;
        }
        timed.wall = steady_seconds() - start;
        timed.tau = tokens / cycles;
        return timed;
    }

    std::vector<std::vector<int>> texts_;  // of plain decoding, which runs first

  private:
    static MeasuredCosts recorded(Session& session, CostAware& drafter) {
        session.begin({});
        const int token = 1;
        session.prefill({&token, 1});
        MeasuredCosts costs;
        for (const CostPoint& point : kRecordedRows) {
            TokenTree tree(0);
            while (tree.size() < point.rows) tree.add(tree.size(), 0);
            const double before = session.seconds().target();
            session.verify(tree);
            costs.verify.push_back({point.rows, session.seconds().target() - before});
        }
        const DraftRequest request{session.text().draft(), session.text().tokens()};
        for (int width : {1, 4, 10})
            if (width <= drafter.widest_level())
                costs.level.push_back(
                    {width, std::max(1e-9, drafter.level_seconds(request, width))});
        return costs;
    }
};

// A prompt's best is partly luck. Who knew each one's time of an answer's other half and kept to
// the best of it: how far from the best of this half, at worst, and on how many prompts beyond 1.1.
void print_luck(const std::vector<std::pair<std::string, Timed>>& singles) {
    for (const bool first : {false, true}) {
        double worst = 0;
        int beyond = 0;
        for (size_t i = 0; i < singles[0].second.seconds.size(); ++i) {
            double known = HUGE_VAL, least = HUGE_VAL, chosen = 0;
            for (const auto& [what, timed] : singles) {
                const double a = timed.first_half[i], b = timed.seconds[i] - a;
                const double other = first ? b : a, here = first ? a : b;
                if (other < known) {
                    known = other;
                    chosen = here;
                }
                least = std::min(least, here);
            }
            worst = std::max(worst, chosen / least);
            beyond += chosen > 1.1 * least;
        }
        std::printf(
            "the best of the %s half is %.3f of the other's best, at worst, %d beyond 1.1\n",
            first ? "second" : "first", worst, beyond);
    }
}

TEST_P(RecordedCosts, AutoIsNearTheBestOfAll) {
    const Timed plain = run({}, "none");
    std::vector<std::pair<std::string, Timed>> singles = {{"none", plain}};
    singles.emplace_back("lookup", run({}, "lookup"));
    singles.emplace_back("eagle2", run({"eagle"}, "eagle2"));
    singles.emplace_back("eagle3", run({"eagle3"}, "eagle3"));
    singles.emplace_back("medusa", run({"medusa"}, "medusa"));
    singles.emplace_back("hydra", run({"hydra"}, "hydra"));
    singles.emplace_back("model", run({"draft"}, "model"));
    for (const std::string& head : kHeads)
        singles.emplace_back("grafted " + head, run({head}, "grafted"));
    const Timed automatic = run(kHeads, "auto");
    const Timed* best = &plain;
    for (const auto& [what, timed] : singles) {
        double apart = 0;  // from a prompt's best, at worst
        for (size_t i = 0; i < timed.seconds.size(); ++i)
            for (const auto& [other, one] : singles)
                apart = std::max(apart, timed.seconds[i] / one.seconds[i]);
        std::printf(
            "%-16s %.3f of plain, at worst %.3f of a prompt's best, tau %.2f, "
            "wall clock %.2f s\n",
            what.c_str(), timed.total / plain.total, apart, timed.tau, timed.wall);
        if (timed.total < best->total) best = &timed;
    }
    double worst = 0, worst_plain = 0;
    int beyond = 0;
    for (size_t i = 0; i < automatic.seconds.size(); ++i) {
        double least = plain.seconds[i];
        for (const auto& [what, timed] : singles) least = std::min(least, timed.seconds[i]);
        const double ratio = automatic.seconds[i] / least;
        worst = std::max(worst, ratio);
        beyond += ratio > 1.1;
        worst_plain = std::max(worst_plain, automatic.seconds[i] / plain.seconds[i]);
        if (ratio > 1.1) std::printf("  prompt %zu: %.3f of its best\n", i, ratio);
    }
    std::printf("%-16s %.3f of plain, tau %.2f, wall clock %.2f s\n", "auto",
                automatic.total / plain.total, automatic.tau, automatic.wall);
    std::printf(
        "%.3f of the best single one; at worst %.3f of a prompt's best (%d beyond 1.1), "
        "%.3f of plain\n",
        automatic.total / best->total, worst, beyond, worst_plain);
    print_luck(singles);
    EXPECT_LE(automatic.total, 1.05 * best->total);
    // 1.10 is beyond choosing: who knew half of the answer would miss it more often (print_luck).
    EXPECT_LE(worst, 1.18);
    EXPECT_LE(worst_plain, 1 + 1.0 / 64);
}

INSTANTIATE_TEST_SUITE_P(Temperatures, RecordedCosts, testing::Values(0.0f, 0.8f),
                         [](const auto& test) { return test.param > 0 ? "sampled" : "greedy"; });

}  // namespace
}  // namespace aerie::test
