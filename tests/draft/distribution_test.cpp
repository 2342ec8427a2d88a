// Distributions that the host computes from logits, against the reference.
#include "draft/distribution.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "draft/chance.h"
#include "reference/choices.h"

namespace aerie::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<double> dense(const Distribution& distribution, size_t vocab) {
    std::vector<double> all(vocab);
    for (size_t i = 0; i < distribution.ids.size(); ++i) {
        EXPECT_TRUE(i == 0 || distribution.ids[i - 1] < distribution.ids[i]);
        EXPECT_GT(distribution.probabilities[i], 0);
        all[size_t(distribution.ids[i])] = distribution.probabilities[i];
    }
    return all;
}

std::vector<float> random_logits(size_t vocab, bool coarse, std::mt19937& random) {
    std::vector<float> logits(vocab);
    for (float& logit : logits) {
        logit = float(int(random() % 20001) - 10000) * 5e-4f;
        if (coarse) logit = std::round(logit * 2);  // ties
    }
    return logits;
}

const Filters kFilters[] = {{1, 0, 1, 0},        {0.5f, 0, 1, 0},    {1, 7, 1, 0},
                            {1, 0, 0.3f, 0},     {1, 0, 0.9f, 0},    {1, 0, 0.999f, 0},
                            {1, 0, 1, 0.1f},     {1, 1, 0.5f, 0.5f}, {0.7f, 40, 0.9f, 0.1f},
                            {1, 0, 0, 0},        {1e-30f, 0, 1, 0},  {0, 5, 0.5f, 0},
                            {100, 5000, 0.5f, 1}};

TEST(Distribution, FiltersAreTheReferences) {
    std::mt19937 random(3);
    for (const size_t vocab : {5, 64, 1000})
        for (const bool coarse : {false, true})
            for (const Filters& filters : kFilters) {
                const std::vector<float> logits = random_logits(vocab, coarse, random);
                const auto got = dense(processed(logits, {{filters, {}}}, {}), vocab);
                const auto want = reference::probs(logits, filters);
                for (size_t i = 0; i < vocab; ++i)
                    ASSERT_NEAR(got[i], want[i], 1e-12) << "token " << i << " of " << vocab;
            }
}

// Tokens of a drafted path count like those that were put out.
TEST(Distribution, PenaltiesAreTheReferences) {
    std::mt19937 random(4);
    const Penalties penalties{1.4f, 0.3f, -0.2f};
    const Filters filters{0.9f, 20, 0.95f, 0.01f};
    const std::vector<float> logits = random_logits(100, false, random);
    std::vector<reference::Seen> seen(100);
    std::vector<int32_t> words(100);
    for (size_t i = 0; i < 100; ++i) {
        const int put_out = int(random() % 3);
        const bool in_prompt = random() % 2;
        seen[i] = {in_prompt, put_out};
        words[i] = put_out * kPutOut + (in_prompt ? kInPrompt : 0);
    }
    const std::vector<int> path = {7, 9, 7};
    const auto got = dense(processed(logits, {{filters, penalties}, words}, path), 100);
    for (int token : path) ++seen[size_t(token)].put_out;
    const auto want =
        reference::probs(reference::edited_logits(logits, penalties, seen, {}), filters);
    for (size_t i = 0; i < 100; ++i) ASSERT_NEAR(got[i], want[i], 1e-12) << i;
}

// A head's own ids lead to the target's ids, in any order; penalties are given by target ids.
TEST(Distribution, MappedIds) {
    const std::vector<float> logits = {1, 2, 3, 4};
    const std::vector<int32_t> target_ids = {6, 1, 5, 2};
    std::vector<int32_t> words(8);
    words[5] = kPutOut;
    const Distribution got =
        processed(logits, {{Filters{1}, Penalties{1, 100, 0}}, words}, {}, target_ids);
    EXPECT_EQ(got.ids, (std::vector<int>{1, 2, 5, 6}));
    EXPECT_LT(got.of(5), 1e-30);
    EXPECT_NEAR(got.of(2) / got.of(1), std::exp(2.0), 1e-12);
    EXPECT_EQ(got.of(0), 0);
}

TEST(Distribution, LogitsThatAreNoNumbers) {
    const float nan = std::nanf("");
    const TextRule rule{{Filters{1}, Penalties{}}};
    EXPECT_TRUE(processed(std::vector<float>{nan, nan}, rule, {}).empty());
    EXPECT_EQ(processed(std::vector<float>{nan, 1, -kInfinity}, rule, {}).ids, std::vector<int>{1});
    EXPECT_EQ(processed(std::vector<float>{0, kInfinity, kInfinity}, rule, {}).ids,
              std::vector<int>{1});
    EXPECT_EQ(processed(std::vector<float>{-kInfinity, -kInfinity}, rule, {}).ids,
              std::vector<int>{0});
}

TEST(Distribution, WhatIsLeft) {
    const Distribution p{{0, 2, 5}, {0.25, 0.5, 0.25}}, q{{1, 2, 5}, {0.25, 0.25, 0.5}};
    const Distribution rest = excess(p, q);
    EXPECT_EQ(rest.ids, (std::vector<int>{0, 2}));
    EXPECT_EQ(rest.probabilities, (std::vector<double>{0.5, 0.5}));
    EXPECT_TRUE(excess(p, p).empty());
    Distribution other = p;
    other.remove(2);
    EXPECT_EQ(other.ids, (std::vector<int>{0, 5}));
    EXPECT_EQ(other.probabilities, (std::vector<double>{0.5, 0.5}));
    other.remove(1);
    EXPECT_EQ(other.ids.size(), 2u);
}

TEST(Chance, DrawsEachTokenOnce) {
    const Distribution all{{3, 4, 9}, {0.98, 0.01, 0.01}};
    for (uint64_t seed = 0; seed < 50; ++seed) {
        KeyedChance chance(seed, 7, Purpose::draft);
        std::vector<int> tokens = draw(all, 5, chance);
        std::sort(tokens.begin(), tokens.end());
        EXPECT_EQ(tokens, all.ids);
    }
}

TEST(Chance, NumbersAreTheirOwnForEachUse) {
    std::vector<double> numbers;
    for (uint64_t seed : {0u, 1u})
        for (int position : {0, 1, 2})
            for (Purpose purpose : {Purpose::draft, Purpose::accept})
                for (int index = 0; index < 100; ++index)
                    numbers.push_back(uniform(seed, position, purpose, index));
    EXPECT_GE(*std::min_element(numbers.begin(), numbers.end()), 0);
    EXPECT_LT(*std::max_element(numbers.begin(), numbers.end()), 1);
    EXPECT_NEAR(std::accumulate(numbers.begin(), numbers.end(), 0.0) / 1200, 0.5, 0.03);
    std::sort(numbers.begin(), numbers.end());
    EXPECT_EQ(std::unique(numbers.begin(), numbers.end()), numbers.end());
}

}  // namespace
}  // namespace aerie::test
