// sample, probs and top_k against enumeration in doubles: random logits, edits, masks and filters.
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "core/rng.h"
#include "ops/device_test.h"
#include "ops/mapped_ids.h"
#include "reference/choices.h"

namespace aerie {

using namespace reference;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Random rows with everything that may be done to them.
struct Case {
    Matrix logits;
    std::vector<Edit> edits;
    std::vector<std::vector<bool>> allowed;  // [rows], empty: no mask
    Filters filters;

    std::vector<float> edited(int row) const {
        return edited_logits({logits[row], logits[row] + logits.cols}, row, edits,
                             allowed.empty() ? std::vector<bool>() : allowed[size_t(row)]);
    }
};

Filters random_filters(std::mt19937& generator, int vocab) {
    std::uniform_real_distribution<float> unit(0, 1);
    Filters filters;
    filters.temperature = unit(generator) < 0.1f ? 0 : 0.1f + 2 * unit(generator);
    if (unit(generator) < 0.5f) filters.top_k = 1 + int(unit(generator) * float(vocab));
    if (unit(generator) < 0.5f) filters.top_p = unit(generator);
    if (unit(generator) < 0.3f) filters.min_p = 0.3f * unit(generator);
    return filters;
}

Case random_case(unsigned seed) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> unit(0, 1);
    const auto below = [&](int n) { return int(generator() % unsigned(n)); };
    const int vocab = 1 + below(unit(generator) < 0.1f ? 3000 : 120), rows = 1 + below(4);
    Case c;
    c.logits = random_matrix(rows, vocab, seed + 1, 0.5f + 6 * unit(generator));
    if (unit(generator) < 0.2f)  // ties
        for (float& l : c.logits.data) l = std::round(l);
    if (unit(generator) < 0.1f)
        for (int i = 0; i < 3; ++i)
            c.logits.data[size_t(below(rows * vocab))] = i == 0 ? kNan : -kInfinity;
    if (unit(generator) < 0.5f)
        for (int row = -1; row < rows; ++row)
            for (int i = below(4); i > 0; --i)
                c.edits.push_back({row, below(vocab), 1 + unit(generator), unit(generator) - 0.5f});
    if (unit(generator) < 0.3f)
        for (int r = 0; r < rows; ++r) {
            c.allowed.emplace_back(size_t(vocab));
            for (size_t i = 0; i < size_t(vocab); ++i) c.allowed.back()[i] = unit(generator) < 0.7f;
        }
    c.filters = random_filters(generator, vocab);
    return c;
}

class ChoiceTest : public DeviceTest {
  protected:
    struct OnDevice {
        Array logits, edits, mask;
        Choice choice;
    };
    OnDevice place(const Case& c) {
        OnDevice d;
        d.logits = upload(c.logits);
        d.choice.logits = d.logits;
        d.choice.filters = c.filters;
        if (!c.edits.empty()) {
            d.edits = upload(c.edits);
            d.choice.edits = d.edits;
        }
        if (!c.allowed.empty()) {
            Indices words(c.logits.rows, (c.logits.cols + 31) / 32);
            for (int r = 0; r < c.logits.rows; ++r)
                for (int i = 0; i < c.logits.cols; ++i)
                    if (c.allowed[size_t(r)][size_t(i)])
                        words[r][i / 32] = int32_t(uint32_t(words[r][i / 32]) | 1u << (i % 32));
            d.mask = upload(words);
            d.choice.mask = d.mask;
        }
        return d;
    }

    Matrix run_probs(const Case& c) {
        const OnDevice d = place(c);
        Array out = poisoned(c.logits.rows, c.logits.cols);
        backend_->run(Probs{out, d.choice});
        return download(out);
    }

    // Row r takes noise row r % noise.rows.
    std::vector<int32_t> run_sample(const Case& c, const Matrix& noise_rows) {
        const OnDevice d = place(c);
        std::vector<Row> rows(size_t(c.logits.rows));
        for (int r = 0; r < c.logits.rows; ++r)
            rows[size_t(r)] = {.position = 100 + r % noise_rows.rows, .prefix = 100};
        const Array noise_array = upload(noise_rows);
        Array ids = poisoned_indices(1, c.logits.rows);
        backend_->run(Sample{ids, d.choice, upload(rows), noise_array});
        return download_indices(ids).data;
    }

    struct Best {
        Indices ids;
        Matrix log_probs;
    };
    Best run_top_k(const Case& c, int k, const Matrix* noise_row = nullptr, float softness = 1) {
        const OnDevice d = place(c);
        TopK step;
        step.choice = d.choice;
        step.softness = softness;
        Array noise_array;
        if (noise_row) step.noise = noise_array = upload(*noise_row);
        Array ids = poisoned_indices(c.logits.rows, k), log_probs = poisoned(c.logits.rows, k);
        step.ids = ids;
        step.log_probs = log_probs;
        backend_->run(step);
        return {download_indices(ids), download(log_probs)};
    }
};

TEST_P(ChoiceTest, ProbsMatchEnumeration) {
    double worst = 0;
    for (unsigned seed = 0; seed < 10000; seed += GetParam().step) {
        const Case c = random_case(seed);
        const Matrix got = run_probs(c);
        for (int r = 0; r < got.rows; ++r) {
            const std::vector<float> edited = c.edited(r);
            std::vector<double> want = reference::probs(edited, c.filters);
            for (int i = 0; i < got.cols; ++i) {
                const double error = std::abs(got[r][i] - want[size_t(i)]);
                worst = std::max(worst, error);
                ASSERT_LE(error, 1e-6) << "case " << seed << " row " << r << " token " << i;
            }
        }
    }
    RecordProperty("worst", std::to_string(worst));
}

TEST_P(ChoiceTest, SampleTakesTheArgmaxOfPerturbedProbabilities) {
    for (unsigned seed = 20000; seed < 24000; seed += GetParam().step) {
        const Case c = random_case(seed);
        Matrix noise_rows(2, c.logits.cols);
        for (int r = 0; r < 2; ++r)
            for (int i = 0; i < c.logits.cols; ++i) noise_rows[r][i] = gumbel(seed, r, i);
        const std::vector<int32_t> got = run_sample(c, noise_rows);
        for (int r = 0; r < c.logits.rows; ++r) {
            const std::vector<float> edited = c.edited(r);
            const std::vector<double> p = reference::probs(edited, c.filters);
            std::vector<double> z(p.size());
            for (size_t i = 0; i < p.size(); ++i)
                z[i] = p[i] == 0 ? -HUGE_VAL : std::log(p[i]) + double(noise_rows[r % 2][int(i)]);
            const bool none = reference::argmax({edited.begin(), edited.end()}) < 0;
            const int want = none ? -1 : reference::argmax(z);
            // Where the two best are as close as float arithmetic, either may win.
            if (want != got[size_t(r)] && want >= 0 && got[size_t(r)] >= 0 &&
                c.filters.temperature > 0) {
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
        if (c.filters.temperature == 0) continue;
        const int k = 1 + int(seed % unsigned(std::min(c.logits.cols, kMaxTopK)));
        const float softness = seed % 2 ? 1.0f : 0.7f;
        Matrix noise_row(1, c.logits.cols);
        for (int i = 0; i < c.logits.cols; ++i) noise_row[0][i] = gumbel(seed, 5, i);
        const Best got = run_top_k(c, k, &noise_row, softness);
        for (int r = 0; r < c.logits.rows; ++r) {
            const std::vector<float> edited = c.edited(r);
            const std::vector<double> p = reference::probs(edited, c.filters);
            if (!std::isfinite(edited[size_t(reference::argmax(p))])) continue;  // nothing to weigh
            const auto want = reference::top_k_noisy(p, noise_row.data, softness, k);
            for (int i = 0; i < k; ++i) {
                const double log_prob =
                    size_t(i) < want.size() ? want[size_t(i)].log_prob : -HUGE_VAL;
                if (!std::isfinite(log_prob)) {
                    EXPECT_EQ(got.log_probs[r][i], -kInfinity) << seed;
                } else {
                    EXPECT_NEAR(got.log_probs[r][i], log_prob, 2e-5 * (1 + std::abs(log_prob)))
                        << seed;
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
        c.filters.temperature = temperature;
        return run_sample(c, Matrix(1, int(logits.size())))[0];
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

// Rows that a GPU cuts into slices.
TEST_P(ChoiceTest, LongRowsMatchEnumeration) {
    for (unsigned seed = 0; seed < 6; ++seed) {
        Case c{random_matrix(2, 20000, seed, 2), {}, {}, {.temperature = 0.9f}};
        if (seed % 2 == 1)  // ties across slices
            for (float& l : c.logits.data) l = std::round(l);
        if (seed % 3 > 0) c.filters.top_k = 700;
        if (seed % 3 < 2) c.filters.top_p = 0.8f;
        const Matrix got = run_probs(c);
        const Best best = run_top_k(c, kMaxTopK);
        for (int r = 0; r < 2; ++r) {
            const std::vector<double> want = reference::probs(c.edited(r), c.filters);
            for (int i = 0; i < got.cols; ++i)
                ASSERT_NEAR(got[r][i], want[size_t(i)], 1e-6) << seed << " token " << i;
            const std::vector<Ranked> ranked = reference::top_k(c.edited(r), kMaxTopK);
            for (int i = 0; i < kMaxTopK; ++i) {
                EXPECT_EQ(best.ids[r][i], ranked[size_t(i)].id) << seed << " rank " << i;
                EXPECT_NEAR(best.log_probs[r][i], ranked[size_t(i)].log_prob, 1e-5) << seed;
            }
        }
    }
}

// An edited logit beside the value that it must have: the lower id wins only if both are equal.
TEST_P(ChoiceTest, EditsRoundLikeTheCpu) {
    constexpr int kCases = 1000;
    std::mt19937 generator(7);
    std::uniform_real_distribution<float> unit(0, 1);
    for (int first = 0; first < kCases; first += 100) {
        Case c{Matrix(200, 2), {}, {}, {}};
        for (int r = 0; r < 200; r += 2) {
            const float logit = std::ldexp(unit(generator) - 0.3f, int(generator() % 60) - 30);
            const Edit edit = {r, 1, std::ldexp(0.5f + unit(generator), int(generator() % 8) - 4),
                               r % 4 ? 0 : logit * (unit(generator) - 0.5f)};
            const float want = (logit > 0 ? logit / edit.divide : logit * edit.divide) + edit.add;
            c.logits[r][0] = c.logits[r + 1][1] = want;
            c.logits[r][1] = c.logits[r + 1][0] = logit;
            c.edits.push_back(edit);
            c.edits.push_back({r + 1, 0, edit.divide, edit.add});
        }
        const std::vector<int32_t> got = run_sample(c, Matrix(1, 2));
        EXPECT_EQ(got, std::vector<int32_t>(200, 0)) << first;
    }
}

TEST_P(ChoiceTest, RowsDoNotDependOnTheirNeighbours) {
    Case c{
        random_matrix(64, 4096, 9, 3), {}, {}, {.temperature = 0.8f, .top_k = 200, .top_p = 0.9f}};
    const Matrix together = run_probs(c), noise_row = random_matrix(1, 4096, 8);
    const Best ranked = run_top_k(c, 10), noisy = run_top_k(c, 10, &noise_row);
    for (int r = 0; r < 64; r += 7) {
        Case alone{Matrix(1, 4096), {}, {}, c.filters};
        std::copy_n(c.logits[r], 4096, alone.logits[0]);
        EXPECT_TRUE(same_bits(run_probs(alone)[0], together[r], 4096)) << r;
        EXPECT_TRUE(same_bits(run_top_k(alone, 10).log_probs[0], ranked.log_probs[r], 10)) << r;
        const Best alone_noisy = run_top_k(alone, 10, &noise_row);
        EXPECT_TRUE(same_bits(alone_noisy.log_probs[0], noisy.log_probs[r], 10)) << r;
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, ChoiceTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
