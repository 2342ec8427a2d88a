// Acceptance by p / q keeps the distribution: every way through a cycle by enumeration, a million
// texts with the real random numbers, and five faults that the same checks find.
#include "engine/ratio.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "engine/explored.h"
#include "engine/g_test.h"
#include "engine/tiny_texts.h"

namespace aerie::test {
namespace {

const Tokens kStart = {0, 1, 2};  // the prompt, then the root

// Probabilities of all texts of `length` tokens after kStart; the last token's index runs fastest.
class Joint {
  public:
    Joint(TinyTexts& texts, size_t length) : texts_(texts), length_(length) {
        cells.resize(size_t(std::pow(texts.vocab(), length)));
    }

    // Adds a text that begins with `tokens` and continues as plain decoding does.
    void add(const Tokens& tokens, double weight) {
        if (weight == 0) return;
        if (tokens.size() >= length_) {
            cells[cell_of(tokens)] += weight;
            return;
        }
        Tokens text = kStart, longer = tokens;
        text.insert(text.end(), tokens.begin(), tokens.end());
        longer.push_back(0);
        const std::vector<double>& next = texts_.truth(text);
        for (int token = 0; token < texts_.vocab(); ++token) {
            longer.back() = token;
            add(longer, weight * next[size_t(token)]);
        }
    }
    size_t cell_of(const Tokens& tokens) const {
        size_t cell = 0;
        for (size_t i = 0; i < length_; ++i)
            cell = cell * size_t(texts_.vocab()) + size_t(tokens[i]);
        return cell;
    }

    std::vector<double> cells;

  private:
    TinyTexts& texts_;
    size_t length_;
};

// Compares a joint with plain decoding's; empty if they are equal.
std::string joint_finding(const std::vector<double>& got, const std::vector<double>& want,
                          double& worst) {
    double sum = 0;
    bool is_possible = true;
    for (size_t i = 0; i < got.size(); ++i) {
        sum += got[i];
        worst = std::max(worst, std::abs(got[i] - want[i]));
        is_possible = is_possible && (want[i] > 0 || got[i] == 0);
    }
    if (!is_possible) return "an impossible text was put out";
    if (!(std::abs(sum - 1) < 1e-9)) return "probabilities sum to " + std::to_string(sum);
    return worst < 1e-9 ? "" : "a probability is wrong by " + std::to_string(worst);
}

using Cycle = std::function<Tokens(ExploredChance&)>;

// All ways through a cycle, each followed by plain decoding.
std::string cycle_finding(TinyTexts& texts, size_t length, const Cycle& cycle, double& worst) {
    Joint got(texts, length), want(texts, length);
    want.add({}, 1);
    ExploredChance chance;
    do {
        const Tokens tokens = cycle(chance);
        got.add(tokens, chance.weight());
    } while (chance.next_way());
    return joint_finding(got.cells, want.cells, worst);
}

Sampling sampling_of(const Filters& filters, const Penalties& penalties = {}) {
    return {filters, penalties, 0};
}

const std::vector<Sampling> kSamplings = {
    sampling_of({1, 0, 1, 0}),
    sampling_of({0.6f, 0, 1, 0}),
    sampling_of({1, 2, 1, 0}),
    sampling_of({1, 0, 0.7f, 0}),
    sampling_of({1, 0, 1, 0.3f}),
    sampling_of({1, 0, 1, 0}, {1.7f, 0.6f, 0.4f}),
    sampling_of({0.8f, 3, 0.9f, 0.05f}, {1.3f, -0.5f, 0.3f}),
};

struct Shape {
    int vocab;
    Tokens ranks;  // siblings at each depth
};

TEST(Ratio, EveryWayThroughACycleByEnumeration) {
    double worst = 0;
    for (const Shape& shape : {Shape{4, {1}},
                               {5, {1, 1, 1}},
                               {5, {3}},
                               {4, {3, 2}},
                               {4, {2, 2, 1}},
                               {3, {2, 2, 2}},
                               {3, {3, 3, 3}},
                               {4, {1, 3}}})
        for (const Sampling& sampling : kSamplings)
            for (uint64_t seed = 1; seed <= 3; ++seed) {
                TinyTexts texts(shape.vocab, seed, sampling);
                const auto cycle = [&](ExploredChance& chance) {
                    return texts.cycle(kStart, shape.ranks, chance, chance);
                };
                EXPECT_EQ(cycle_finding(texts, shape.ranks.size() + 1, cycle, worst), "")
                    << shape.vocab << " tokens, seed " << seed;
            }
    std::printf("largest difference: %.2g\n", worst);
}

// Trees as the engine uses them: they are drawn completely before the target is asked.
TEST(Ratio, WholeTreesByEnumeration) {
    double worst = 0;
    for (const Shape& shape : {Shape{3, {2, 2}}, {4, {1, 1, 1}}, {3, {3, 1}}, {3, {2, 1, 1}}})
        for (const Sampling& sampling : kSamplings) {
            TinyTexts texts(shape.vocab, 5, sampling);
            const auto cycle = [&](ExploredChance& chance) {
                return texts.tree_cycle(kStart, shape.ranks, chance, chance);
            };
            EXPECT_EQ(cycle_finding(texts, shape.ranks.size() + 1, cycle, worst), "");
        }
    std::printf("largest difference: %.2g\n", worst);
}

// p-value of the joint of three tokens that are put out in cycles, with the numbers of `runs`
// seeds.
double keyed_p(const Sampling& sampling, int runs, Purpose of_drafts) {
    TinyTexts texts(5, 4, sampling);
    Joint want(texts, 3);
    want.add({}, 1);
    std::vector<int> counts(want.cells.size());
    for (int run = 0; run < runs; ++run) {
        Tokens text = kStart;
        while (text.size() < kStart.size() + 3) {
            const int position = int(text.size());
            KeyedChance drafts(uint64_t(run), position, of_drafts);
            KeyedChance accepts(uint64_t(run), position, Purpose::accept);
            const Tokens tokens = texts.cycle(text, {3, 2}, drafts, accepts);
            text.insert(text.end(), tokens.begin(), tokens.end());
        }
        ++counts[want.cell_of({text.begin() + int(kStart.size()), text.end()})];
    }
    return g_test(counts, want.cells, runs);
}

constexpr double kMinP = 1e-4;  // the seeds are fixed

TEST(Ratio, AMillionTextsWithKeyedNumbers) {
    const double p = keyed_p(kSamplings[0], 1000000, Purpose::draft);
    std::printf("p = %.3g\n", p);
    EXPECT_GT(p, kMinP);
    EXPECT_GT(keyed_p(kSamplings.back(), 200000, Purpose::draft), kMinP);
}

// p = (0, 1/2, 1/2) and q = (1/2, 1/4, 1/4): on a grid of quarters every number is exact.
template <class OnGrid>
std::string grid_finding() {
    const Distribution p{{1, 2}, {0.5, 0.5}}, q{{0, 1, 2}, {0.5, 0.25, 0.25}};
    std::vector<double> got(3);
    OnGrid chance(4);
    do {
        const int token = choose_by_ratio({p, q}, draw(q, 1, chance), chance);
        got[size_t(token)] += chance.weight();
    } while (chance.next_way());
    double worst = 0;
    return joint_finding(got, {0, 0.5, 0.5}, worst);
}

TEST(Ratio, ANumberOfZeroAcceptsNothingThatIsImpossible) {
    EXPECT_EQ(grid_finding<GridChance>(), "");
}

std::string planted(const Sampling& sampling, const TinyFault& fault) {
    TinyTexts texts(4, 2, sampling);
    double worst = 0;
    const auto cycle = [&](ExploredChance& chance) {
        return texts.cycle(kStart, {2, 2}, chance, chance, fault);
    };
    return cycle_finding(texts, 3, cycle, worst);
}

void expect_found(const std::string& finding) {
    std::printf("found: %s\n", finding.c_str());
    EXPECT_NE(finding, "");
}

TEST(RatioFaults, NoneIsNoFinding) {
    for (const Sampling& sampling : kSamplings) EXPECT_EQ(planted(sampling, {}), "");
}

TEST(RatioFaults, TheRatioHasQWithoutFilters) {
    expect_found(planted(sampling_of({1, 2, 1, 0}), {.raw_q = true}));
}

TEST(RatioFaults, TheLastTokenIsDrawnWithoutFilters) {
    expect_found(planted(sampling_of({1, 2, 1, 0}), {.raw_bonus = true}));
    expect_found(planted(sampling_of({1, 0, 0.7f, 0}), {.raw_bonus = true}));
}

TEST(RatioFaults, TriedSiblingsStayInQ) {
    expect_found(planted(sampling_of({1, 0, 1, 0}), {.keeps_tried = true}));
}

TEST(RatioFaults, DraftsAndAcceptanceShareNumbers) {
    const double p = keyed_p(kSamplings[0], 20000, Purpose::accept);
    std::printf("found: p = %.3g\n", p);
    EXPECT_LT(p, kMinP);
}

struct LessOrEqual final : GridChance {
    using GridChance::GridChance;
    bool happens(double probability) override { return next() <= probability; }
};

TEST(RatioFaults, LessOrEqualInPlaceOfLess) {
    expect_found(grid_finding<LessOrEqual>());
}

}  // namespace
}  // namespace aerie::test
