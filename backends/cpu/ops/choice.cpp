// Ops Sample and TopK: choices from rows of logits.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/float_environment.h"
#include "cpu/logit_row.h"

namespace aerie::cpu {

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kChoiceWork = 8;  // work per logit, for Pool::run

}  // namespace

template <>
void CpuBackend::execute(const Sample& step) {
    FloatEnvironment environment;
    const Choice& choice = step.choice;
    assert(choice.logits.cols <= reserved().vocab);
    pool_.run(
        step.ids.cols, kChoiceWork * choice.logits.cols, [&](int first, int last, int thread) {
            for (int r = first; r < last; ++r) {
                const Row& place = *row<Row>(step.rows.block, r);
                if (place.slot < 0) continue;
                const Scratch& scratch = scratch_[size_t(thread)];
                const PathTokens path =
                    choice.rules.seen ? path_tokens(step.rows, r) : PathTokens{};
                const LogitRow logits = step.noise
                                            ? processed_row(kernels_, choice, r, path, scratch)
                                            : edited_row(kernels_, choice, r, path, scratch);
                ArgMax chosen = logits.top;
                if (step.noise && logits.temperature > 0) {
                    const int noise_row = logits.rule.noise + place.depth();
                    assert(noise_row >= 0 && noise_row < step.noise.rows);
                    chosen =
                        kernels_.argmax_noise(logits.logits, row_f32(step.noise, noise_row),
                                              logits.top.value, logits.rule.scale, logits.vocab);
                }
                row<int32_t>(step.ids, 0)[r] = chosen.id;
            }
        });
}

namespace {

constexpr int kSoftmaxWidth = 10;  // candidates in the softmax of noisy values

struct Best {
    int32_t ids[kMaxTopK];
    float values[kMaxTopK] = {};
    int count = 0;  // candidates above -inf
};

// Appends ids that are not above -inf, -inf before NaN, so that there are always k.
void complete(Best& best, int k, const float* x, int vocab) {
    int count = best.count;
    if (count >= k) return;
    for (bool nan : {false, true})
        for (int id = 0; id < vocab && count < k; ++id)
            if (nan ? std::isnan(x[id]) : x[id] == -kInfinity) best.ids[count++] = id;
}

double log_sum_exp(const float* values, int count, double softness) {
    double sum = 0;
    for (int i = 0; i < count; ++i)
        sum += std::exp((double(values[i]) - double(values[0])) / softness);
    return double(values[0]) / softness + std::log(sum);
}

// The result of top_k for one row: a candidate's log-probability is value / softness - total.
struct Ranking {
    Best best;
    double softness = 1, total = 0;
};

Ranking rank_logits(const Kernels& kernels, const Choice& choice, int index, int k,
                    const Scratch& scratch) {
    Ranking ranking;
    Best& best = ranking.best;
    const LogitRow row = edited_row(kernels, choice, index, {}, scratch);
    best.count = kernels.best(best.ids, best.values, k, row.logits, row.vocab);
    complete(best, k, row.logits, row.vocab);
    const double sum = kernels.exp_sum(row.logits, row.top.value, 1.0f, row.vocab);
    ranking.total = double(row.top.value) + std::log(sum);
    return ranking;
}

// The noise of each draft id.
const float* mapped_noise(const TopK& step, const Scratch& scratch) {
    const float* noise = row_f32(step.noise, 0);
    if (!step.choice.id_map) return noise;
    const int32_t* map = row<int32_t>(step.choice.id_map, 0);
    for (int i = 0; i < step.choice.logits.cols; ++i) scratch.masses[i] = noise[map[i]];
    return scratch.masses;
}

Ranking rank_noisy(const Kernels& kernels, const TopK& step, int index, int k,
                   const Scratch& scratch) {
    const LogitRow row = processed_row(kernels, step.choice, index, {}, scratch);
    if (row.temperature == 0) return rank_logits(kernels, step.choice, index, k, scratch);
    Ranking ranking;
    Best& best = ranking.best;
    float* z = scratch.logits;
    kernels.perturb(z, row.logits, mapped_noise(step, scratch), row.top.value, row.rule.scale,
                    row.vocab);
    const int width = std::min(std::max(k, kSoftmaxWidth), row.vocab);
    best.count = kernels.best(best.ids, best.values, width, z, row.vocab);
    complete(best, k, z, row.vocab);
    ranking.softness = row.rule.softness.value;
    ranking.total = log_sum_exp(best.values, best.count, ranking.softness);
    return ranking;
}

}  // namespace

template <>
void CpuBackend::execute(const TopK& step) {
    FloatEnvironment environment;
    const int vocab = step.choice.logits.cols, k = step.ids.cols;
    const int32_t* map = step.choice.id_map ? row<int32_t>(step.choice.id_map, 0) : nullptr;
    assert(vocab <= reserved().vocab);
    pool_.run(step.ids.rows, kChoiceWork * vocab, [&](int first, int last, int thread) {
        const Scratch& scratch = scratch_[size_t(thread)];
        for (int r = first; r < last; ++r) {
            const Ranking ranking = step.noise ? rank_noisy(kernels_, step, r, k, scratch)
                                               : rank_logits(kernels_, step.choice, r, k, scratch);
            const Best& best = ranking.best;
            int32_t* ids = row<int32_t>(step.ids, r);
            float* log_probs = row_f32(step.log_probs, r);
            for (int i = 0; i < k; ++i) {
                ids[i] = map ? map[best.ids[i]] : best.ids[i];
                const double log_prob = double(best.values[i]) / ranking.softness - ranking.total;
                log_probs[i] = i < best.count ? float(log_prob) : -kInfinity;
            }
        }
    });
}

}  // namespace aerie::cpu
