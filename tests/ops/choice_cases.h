// Random rows of logits with everything that may apply to them, on a device and for the reference.
#pragma once

#include <cmath>
#include <limits>

#include "ops/device_test.h"
#include "reference/choices.h"

namespace aerie {

using reference::Indices;
using reference::Matrix;
using reference::Seen;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// How the token of a row is chosen.
struct Chooser {
    Filters filters;
    Penalties penalties = {};
    int text = 0;
    float softness = 1;
};

// Random rows of logits with filters, penalties, masks and trees.
struct Case {
    Matrix logits;
    std::vector<Chooser> rules = {};              // one for all rows, or one for each
    std::vector<std::vector<Seen>> seen = {};     // [texts]; empty: no penalties
    std::vector<std::vector<bool>> allowed = {};  // [rows], empty: no mask
    std::vector<int> parents = {},
                     tokens = {};  // [rows] of a tree that has its root in row 0; empty: no tree

    const Chooser& rule(int row) const { return rules[rules.size() == 1 ? 0 : size_t(row)]; }
    // Rows of its path, the root first.
    std::vector<int> path(int row) const {
        std::vector<int> path;
        if (parents.empty()) return {row};
        for (int i = row; i >= 0; i = parents[size_t(i)]) path.insert(path.begin(), i);
        return path;
    }
    int depth(int row) const { return int(path(row).size()) - 1; }
    // Logits after penalties and mask. in_tree: drafted ancestors count as put out, as they do for
    // the choice after a drafted row.
    std::vector<float> edited(int row, bool in_tree = false) const {
        std::vector<Seen> known;
        if (!seen.empty()) {
            known = seen[size_t(rule(row).text)];
            for (int ancestor : path(row))
                if (in_tree && ancestor != 0 && !parents.empty())
                    ++known[size_t(tokens[size_t(ancestor)])].put_out;
        }
        return reference::edited_logits(
            {logits[row], logits[row] + logits.cols}, rule(row).penalties, known,
            allowed.empty() ? std::vector<bool>() : allowed[size_t(row)]);
    }
};

inline Filters random_filters(std::mt19937& generator, int vocab) {
    std::uniform_real_distribution<float> unit(0, 1);
    Filters filters;
    filters.temperature = unit(generator) < 0.1f ? 0 : 0.1f + 2 * unit(generator);
    if (unit(generator) < 0.5f) filters.top_k = 1 + int(unit(generator) * float(vocab));
    if (unit(generator) < 0.5f) filters.top_p = unit(generator);
    if (unit(generator) < 0.3f) filters.min_p = 0.3f * unit(generator);
    return filters;
}

inline std::vector<Seen> random_seen(std::mt19937& generator, int vocab) {
    std::vector<Seen> seen(size_t(vocab), Seen{});
    for (int i = 0; i < 8; ++i) {
        Seen& token = seen[generator() % unsigned(vocab)];
        token.in_prompt |= generator() % 2 == 0;
        token.put_out += int(generator() % 3);
    }
    return seen;
}

constexpr int kTexts = 2, kNoiseRows = 4;  // rows of noise for each text

inline Case random_case(unsigned seed) {
    std::mt19937 generator(seed);
    std::uniform_real_distribution<float> unit(0, 1);
    const auto below = [&](int n) { return int(generator() % unsigned(n)); };
    const int vocab = 1 + below(unit(generator) < 0.1f ? 3000 : 120), rows = 1 + below(4);
    Case c;
    c.logits = reference::random_matrix(rows, vocab, seed + 1, 0.5f + 6 * unit(generator));
    if (unit(generator) < 0.2f)  // ties
        for (float& l : c.logits.data) l = std::round(l);
    if (unit(generator) < 0.1f)
        for (int i = 0; i < 3; ++i)
            c.logits.data[size_t(below(rows * vocab))] = i == 0 ? kNan : -kInfinity;
    const bool penalised = unit(generator) < 0.5f;
    if (penalised)
        for (int i = 0; i < kTexts; ++i) c.seen.push_back(random_seen(generator, vocab));
    const int rules = unit(generator) < 0.5f ? 1 : rows;
    for (int r = 0; r < rules; ++r) {
        c.rules.push_back({random_filters(generator, vocab), {}, below(kTexts)});
        if (penalised)
            c.rules.back().penalties = {0.5f + unit(generator), unit(generator) - 0.5f,
                                        unit(generator) - 0.5f};
    }
    if (unit(generator) < 0.3f)
        for (int r = 0; r < rows; ++r) {
            c.allowed.emplace_back(size_t(vocab));
            for (size_t i = 0; i < size_t(vocab); ++i) c.allowed.back()[i] = unit(generator) < 0.7f;
        }
    if (unit(generator) < 0.5f)
        for (int r = 0; r < rows; ++r) {
            c.parents.push_back(r == 0 ? -1 : below(r));
            c.tokens.push_back(below(vocab));
        }
    for (Chooser& rule : c.rules) rule.softness = 0.3f + 1.5f * unit(generator);
    return c;
}

class ChoiceTest : public DeviceTest {
  protected:
    struct OnDevice {
        Array logits, seen, mask;
        Choice choice;
    };
    OnDevice place(const Case& c) {
        OnDevice d;
        d.logits = upload(c.logits);
        d.choice.logits = d.logits;
        std::vector<RowChoice> rules;
        for (const Chooser& chooser : c.rules) {
            rules.emplace_back(chooser.filters, chooser.penalties);
            rules.back().sequence = chooser.text;
            rules.back().noise = chooser.text * kNoiseRows;
            rules.back().softness = Softness(chooser.softness);
            d.choice.rules.include(chooser.filters);
        }
        d.choice.rules.block = upload(rules);
        if (!c.seen.empty()) {
            Indices words(int(c.seen.size()), int(c.seen[0].size()));
            for (int text = 0; text < words.rows; ++text)
                for (int i = 0; i < words.cols; ++i) {
                    const Seen& seen = c.seen[size_t(text)][size_t(i)];
                    words[text][i] = seen.put_out * kPutOut + seen.in_prompt * kInPrompt;
                }
            d.seen = upload(words);
            d.choice.rules.seen = d.seen;
        }
        if (!c.allowed.empty()) {
            Indices words(int(c.allowed.size()), (int(c.allowed[0].size()) + 31) / 32);
            for (int r = 0; r < words.rows; ++r)
                for (size_t i = 0; i < c.allowed[size_t(r)].size(); ++i)
                    if (c.allowed[size_t(r)][i])
                        words[r][i / 32] = int32_t(uint32_t(words[r][i / 32]) | 1u << (i % 32));
            d.mask = upload(words);
            d.choice.mask = d.mask;
        }
        return d;
    }

    // A row takes the noise row of its depth and of its rule's text; without noise the best token
    // is taken.
    std::vector<int32_t> run_sample(const Case& c, const Matrix* noise_rows) {
        constexpr int kPrefix = 100;
        const OnDevice d = place(c);
        std::vector<Row> rows(size_t(c.logits.rows));
        for (int r = 0; r < c.logits.rows; ++r) {
            Row& row = rows[size_t(r)];
            row = {.position = kPrefix + c.depth(r), .slot = kPrefix + r, .prefix = kPrefix};
            if (!c.tokens.empty()) row.token = c.tokens[size_t(r)];
            for (int i = 0; i < c.depth(r); ++i) row.path[i] = kPrefix + c.path(r)[size_t(i)];
        }
        Array noise_array, ids = poisoned_indices(1, c.logits.rows);
        Sample step{ids, d.choice, upload(rows)};
        if (noise_rows) step.noise = noise_array = upload(*noise_rows);
        backend_->run(step);
        return download_indices(ids).data;
    }

    // Checks which tokens the filters keep of a row. The noise turns their order (logit descending,
    // id ascending) round, so that the last one that is kept is chosen.
    void expect_cut(const Case& c, int row, const std::string& what) {
        const int vocab = c.logits.cols;
        const Filters& filters = c.rule(row).filters;
        Case alone{Matrix(1, vocab), {c.rule(row)}, c.seen};
        std::copy_n(c.logits[row], vocab, alone.logits[0]);
        if (!c.allowed.empty()) alone.allowed = {c.allowed[size_t(row)]};
        const std::vector<float> edited = alone.edited(0);
        const std::vector<reference::Ranked> order = reference::top_k(edited, vocab);
        Matrix noise_rows(kTexts * kNoiseRows, vocab);
        for (size_t i = 0; i < order.size(); ++i)
            for (int r = 0; r < noise_rows.rows; ++r) noise_rows[r][order[i].id] = 4096 * float(i);
        const int got = run_sample(alone, &noise_rows)[0];
        const std::vector<double> kept = reference::probs(edited, filters);
        const std::vector<double> all =
            reference::probs(edited, {.temperature = filters.temperature});
        double mass = 0, mass_to_got = 0, mass_to_want = 0;
        int want = -1;
        for (const reference::Ranked& next : order) {
            mass += all[size_t(next.id)];
            if (next.id == got) mass_to_got = mass;
            if (kept[size_t(next.id)] > 0) want = next.id, mass_to_want = mass;
        }
        // Arithmetic in floats may move the cut by tokens that hardly count.
        const bool is_near =
            got >= 0 && all[size_t(got)] > 0 && std::abs(mass_to_got - mass_to_want) <= 1e-6;
        EXPECT_TRUE(got == want || is_near) << what << ": " << got << ", not " << want;
    }

    struct Best {
        Indices ids;
        Matrix log_probs;
    };
    Best run_top_k(const Case& c, int k, const Matrix* noise_row = nullptr,
                   const Indices* id_map = nullptr) {
        const OnDevice d = place(c);
        TopK step;
        step.choice = d.choice;
        Array noise_array, map_array;
        if (noise_row) step.noise = noise_array = upload(*noise_row);
        if (id_map) step.choice.id_map = map_array = upload(*id_map);
        Array ids = poisoned_indices(c.logits.rows, k), log_probs = poisoned(c.logits.rows, k);
        step.ids = ids;
        step.log_probs = log_probs;
        backend_->run(step);
        return {download_indices(ids), download(log_probs)};
    }

    // Checks the log-probabilities of row r; `what` is for messages.
    void expect_noisy_best(const Best& got, int r, const std::vector<float>& edited,
                           const Chooser& rule, const std::vector<float>& noise,
                           const std::string& what) {
        const std::vector<double> p = reference::probs(edited, rule.filters);
        if (!std::isfinite(edited[size_t(reference::argmax(p))])) return;  // no logit is finite
        const auto want = reference::top_k_noisy(p, noise, rule.softness, got.ids.cols);
        for (int i = 0; i < got.ids.cols; ++i) {
            const double log_prob = size_t(i) < want.size() ? want[size_t(i)].log_prob : -HUGE_VAL;
            if (!std::isfinite(log_prob)) {
                EXPECT_EQ(got.log_probs[r][i], -kInfinity) << what;
            } else {
                EXPECT_NEAR(got.log_probs[r][i], log_prob, 2e-5 * (1 + std::abs(log_prob))) << what;
            }
        }
    }
};

}  // namespace aerie
