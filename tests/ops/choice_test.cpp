// sample and top_k against enumeration in doubles: random logits, penalties, masks and filters.
#include "core/rng.h"
#include "ops/choice_cases.h"
#include "ops/mapped_ids.h"

namespace aerie {

using namespace reference;

namespace {

TEST_P(ChoiceTest, FiltersKeepWhatEnumerationKeeps) {
    for (unsigned seed = 0; seed < 10000; seed += GetParam().step) {
        const Case c = random_case(seed);
        for (int r = 0; r < c.logits.rows; ++r)
            expect_cut(c, r, "case " + std::to_string(seed) + " row " + std::to_string(r));
    }
}

TEST_P(ChoiceTest, SampleTakesTheArgmaxOfPerturbedProbabilities) {
    for (unsigned seed = 20000; seed < 24000; seed += GetParam().step) {
        const Case c = random_case(seed);
        Matrix noise_rows(kTexts * kNoiseRows, c.logits.cols);
        for (int r = 0; r < noise_rows.rows; ++r)
            for (int i = 0; i < c.logits.cols; ++i) noise_rows[r][i] = gumbel(seed, r, i);
        const std::vector<int32_t> got = run_sample(c, &noise_rows);
        for (int r = 0; r < c.logits.rows; ++r) {
            const std::vector<float> edited = c.edited(r, true);
            const float* noise = noise_rows[c.rule(r).text * kNoiseRows + c.depth(r)];
            const std::vector<double> p = reference::probs(edited, c.rule(r).filters);
            std::vector<double> z(p.size());
            for (size_t i = 0; i < p.size(); ++i)
                z[i] = p[i] == 0 ? -HUGE_VAL : std::log(p[i]) + double(noise[i]);
            const bool none = reference::argmax({edited.begin(), edited.end()}) < 0;
            const int want = none ? -1 : reference::argmax(z);
            // If the two best values differ by no more than float arithmetic does, either may win.
            if (want != got[size_t(r)] && want >= 0 && got[size_t(r)] >= 0 &&
                c.rule(r).filters.temperature > 0) {
                EXPECT_NEAR(z[size_t(want)], z[size_t(got[size_t(r)])], 1e-5) << seed;
            } else {
                EXPECT_EQ(got[size_t(r)], want) << "case " << seed << " row " << r;
            }
        }
    }
}

TEST_P(ChoiceTest, TopKMatchesEnumeration) {
    for (unsigned seed = 40000; seed < 44000; seed += GetParam().step) {
        const Case c = random_case(seed);
        const int k = 1 + int(seed % unsigned(std::min(c.logits.cols, kMaxTopK)));
        const Best got = run_top_k(c, k);
        for (int r = 0; r < c.logits.rows; ++r) {
            const std::vector<Ranked> want = reference::top_k(c.edited(r), k);
            std::vector<bool> seen(size_t(c.logits.cols));
            for (int i = 0; i < k; ++i) {
                const int id = got.ids[r][i];
                ASSERT_TRUE(id >= 0 && id < c.logits.cols && !seen[size_t(id)]) << seed;
                seen[size_t(id)] = true;
                if (size_t(i) >= want.size() || !std::isfinite(want[size_t(i)].log_prob)) {
                    EXPECT_EQ(got.log_probs[r][i], -kInfinity) << seed;
                    continue;
                }
                EXPECT_EQ(id, want[size_t(i)].id) << "case " << seed << " rank " << i;
                EXPECT_NEAR(got.log_probs[r][i], want[size_t(i)].log_prob,
                            1e-6 * (1 + std::abs(want[size_t(i)].log_prob)))
                    << seed;
            }
        }
    }
}

TEST_P(ChoiceTest, TopKWithNoiseMatchesEnumeration) {
    for (unsigned seed = 60000; seed < 63000; seed += GetParam().step) {
        Case c = random_case(seed);
        const int k = 1 + int(seed % unsigned(std::min(c.logits.cols, kMaxTopK)));
        Matrix noise_row(1, c.logits.cols);
        for (int i = 0; i < c.logits.cols; ++i) noise_row[0][i] = gumbel(seed, 5, i);
        const Best got = run_top_k(c, k, &noise_row);
        for (int r = 0; r < c.logits.rows; ++r)
            if (const Chooser& rule = c.rule(r); rule.filters.temperature > 0)
                expect_noisy_best(got, r, c.edited(r), rule, noise_row.data,
                                  "case " + std::to_string(seed));
    }
}

// With a draft vocabulary the choices equal those over a row that has no other tokens; noise,
// penalties and masks are given by target ids.
TEST_P(ChoiceTest, ReducedVocabulariesMeetNoisePenaltiesAndMaskByTargetId) {
    for (unsigned seed = 70000; seed < 71000; seed += GetParam().step) {
        const Case all = random_case(seed);
        std::mt19937 generator(seed);
        std::vector<int32_t> target_ids;
        for (int id = 0; id < all.logits.cols; ++id)
            if (generator() % 3 > 0) target_ids.push_back(id);
        const int vocab = int(target_ids.size()), k = std::min(vocab, 7);
        if (vocab == 0) continue;
        Indices id_map(1, vocab);
        id_map.data = target_ids;
        Matrix noise_row(1, all.logits.cols);
        for (int i = 0; i < all.logits.cols; ++i) noise_row[0][i] = gumbel(seed, 5, i);
        Case draft = all;
        draft.parents.clear();
        draft.logits = Matrix(all.logits.rows, vocab);
        std::vector<float> noise;
        for (int id : target_ids) noise.push_back(noise_row[0][id]);
        for (int r = 0; r < all.logits.rows; ++r)
            for (int i = 0; i < vocab; ++i)
                draft.logits[r][i] = all.logits[r][target_ids[size_t(i)]];
        const Best got = run_top_k(draft, k, &noise_row, &id_map);
        for (int r = 0; r < all.logits.rows; ++r) {
            const std::string what = "case " + std::to_string(seed) + " row " + std::to_string(r);
            const std::vector<float> whole = all.edited(r);
            std::vector<float> edited;
            for (int id : target_ids) edited.push_back(whole[size_t(id)]);
            const Chooser& rule = all.rule(r);
            if (rule.filters.temperature == 0) {
                const int best = reference::argmax({edited.begin(), edited.end()});
                if (best >= 0) {
                    EXPECT_EQ(got.ids[r][0], target_ids[size_t(best)]) << what;
                }
                continue;
            }
            expect_noisy_best(got, r, edited, rule, noise, what);
            const auto want = reference::top_k_noisy(reference::probs(edited, rule.filters), noise,
                                                     rule.softness, k);
            for (size_t i = 0; i + 1 < want.size(); ++i) {
                const bool is_apart = want[i].log_prob > want[i + 1].log_prob + 1e-3 &&
                                      (i == 0 || want[i - 1].log_prob > want[i].log_prob + 1e-3);
                if (is_apart) {
                    EXPECT_EQ(got.ids[r][int(i)], target_ids[size_t(want[i].id)]) << what;
                }
            }
        }
    }
}

TEST_P(ChoiceTest, TopKMapsIds) {
    EXPECT_EQ(test::mapped_ids_finding(*backend_), "");
}

TEST_P(ChoiceTest, ExtremesOfOneRow) {
    const auto one = [&](std::vector<float> logits, float temperature) {
        Case c;
        c.logits = Matrix(1, int(logits.size()));
        c.logits.data = logits;
        c.rules = {{.filters = {.temperature = temperature}}};
        const Matrix noise(1, int(logits.size()));
        return run_sample(c, temperature > 0 ? &noise : nullptr)[0];
    };
    for (float temperature : {0.0f, 1.0f, 1e-40f, 1e30f}) {
        EXPECT_EQ(one({kNan, kNan, kNan}, temperature), -1);
        EXPECT_EQ(one({kNan, -kInfinity, -kInfinity}, temperature), 1);
        EXPECT_EQ(one({-kInfinity, kNan, -3e38f}, temperature), 2);
        EXPECT_EQ(one({1, kInfinity, kNan, kInfinity}, temperature), 1);
        EXPECT_EQ(one({3, 3, 3}, temperature), 0);
    }
    std::vector<float> late(100, 1.0f);
    late[37] = late[38] = late[90] = 2;
    EXPECT_EQ(one(late, 0), 37);
    std::vector<float> ties(20000, 1.0f);
    for (size_t i : {7000, 7016, 7256, 7512, 12000, 19999}) ties[i] = 2;
    EXPECT_EQ(one(ties, 0), 7000);
    EXPECT_EQ(one(ties, 1), 7000);
}

// Rows so long that a GPU cuts them into slices.
TEST_P(ChoiceTest, LongRowsMatchEnumeration) {
    for (unsigned seed = 0; seed < 6; ++seed) {
        Case c{random_matrix(2, 20000, seed, 2), {{{.temperature = 0.9f}}}};
        Filters& filters = c.rules[0].filters;
        if (seed % 2 == 1)  // ties across slices
            for (float& l : c.logits.data) l = std::round(l);
        if (seed % 3 > 0) filters.top_k = 700;
        if (seed % 3 < 2) filters.top_p = 0.8f;
        const Best best = run_top_k(c, kMaxTopK);
        for (int r = 0; r < 2; ++r) {
            expect_cut(c, r, "case " + std::to_string(seed) + " row " + std::to_string(r));
            const std::vector<Ranked> ranked = reference::top_k(c.edited(r), kMaxTopK);
            for (int i = 0; i < kMaxTopK; ++i) {
                EXPECT_EQ(best.ids[r][i], ranked[size_t(i)].id) << seed << " rank " << i;
                EXPECT_NEAR(best.log_probs[r][i], ranked[size_t(i)].log_prob, 1e-5) << seed;
            }
        }
    }
}

// Each pair of tokens has a logit that penalties change and the value that it must become: the
// lower id wins only if both are equal.
TEST_P(ChoiceTest, PenaltiesRoundLikeTheCpu) {
    constexpr int kCases = 1000, kRows = 200;
    std::mt19937 generator(7);
    std::uniform_real_distribution<float> unit(0, 1);
    for (int first = 0; first < kCases; first += kRows / 2) {
        Case c{Matrix(kRows, 2)};
        for (int r = 0; r < kRows; r += 2) {
            const float logit = std::ldexp(unit(generator) - 0.3f, int(generator() % 60) - 30);
            const Penalties penalties = {
                std::ldexp(0.5f + unit(generator), int(generator() % 8) - 4),
                logit * (unit(generator) - 0.5f), r % 8 ? logit * unit(generator) : 0};
            const Seen seen = {r % 6 == 0, int(generator() % 4)};
            const float want = edited_logits({logit}, penalties, {seen}, {})[0];
            c.logits[r][0] = c.logits[r + 1][1] = want;
            c.logits[r][1] = c.logits[r + 1][0] = logit;
            for (int i : {0, 1}) {
                c.rules.push_back({{}, penalties, r + i});
                c.seen.emplace_back(2);
                c.seen.back()[size_t(1 - i)] = seen;
            }
        }
        const std::vector<int32_t> got = run_sample(c, nullptr);
        EXPECT_EQ(got, std::vector<int32_t>(kRows, 0)) << first;
    }
}

// Rows under one rule, and rows of several texts with their own rules in the same op.
TEST_P(ChoiceTest, RowsDoNotDependOnTheirNeighbours) {
    constexpr int kVocab = 4096;
    const Chooser choosers[] = {{{.temperature = 0.8f, .top_k = 200, .top_p = 0.9f}},
                                {{.temperature = 1.3f, .top_p = 0.7f}, {1.3f, 0.1f, 0.2f}, 1},
                                {{.temperature = 0}, {1.1f, 0, 0}, 0},
                                {{.temperature = 0.6f, .top_k = 20}},
                                {{.temperature = 1, .min_p = 0.01f}, {}, 1},
                                {{.temperature = 1}}};
    std::mt19937 generator(3);
    const Matrix logits = random_matrix(64, kVocab, 9, 3), noise_row = random_matrix(1, kVocab, 8);
    const Matrix noise_rows = random_matrix(kTexts * kNoiseRows, kVocab, 18);
    for (size_t mixed : {1, 6}) {
        Case c{logits};
        for (size_t r = 0; r < (mixed > 1 ? 64 : 1); ++r) c.rules.push_back(choosers[r % mixed]);
        if (mixed > 1)
            for (int i = 0; i < kTexts; ++i) c.seen.push_back(random_seen(generator, kVocab));
        const std::vector<int32_t> chosen = run_sample(c, &noise_rows);
        const Best ranked = run_top_k(c, 10), noisy = run_top_k(c, 10, &noise_row);
        for (int r = 0; r < 64; r += 5) {
            Case alone{Matrix(1, kVocab), {c.rule(r)}, c.seen};
            std::copy_n(c.logits[r], kVocab, alone.logits[0]);
            EXPECT_EQ(run_sample(alone, &noise_rows)[0], chosen[size_t(r)]) << r;
            EXPECT_TRUE(same_bits(run_top_k(alone, 10).log_probs[0], ranked.log_probs[r], 10)) << r;
            const Best alone_noisy = run_top_k(alone, 10, &noise_row);
            EXPECT_TRUE(same_bits(alone_noisy.log_probs[0], noisy.log_probs[r], 10)) << r;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, ChoiceTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
