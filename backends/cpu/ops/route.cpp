// Op Route: the best experts of each row, and the places of all rows by expert.
#include <algorithm>
#include <bit>
#include <numeric>

#include "core/arithmetic.h"
#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

namespace {

// A key in the order of floats; -0 is 0, NaN comes before -inf.
uint32_t key_of(float x) {
    constexpr uint32_t kSign = 0x80000000u, kInfinity = 0x7f800000u;
    const uint32_t word = std::bit_cast<uint32_t>(x), magnitude = word & ~kSign;
    if (magnitude > kInfinity) return 0;
    if (magnitude == 0) return kSign;
    return word == magnitude ? word | kSign : ~word;
}

void choose(int32_t* ids, int k, const float* logits, int experts) {
    int32_t all[kMaxExperts];
    std::iota(all, all + experts, 0);
    std::partial_sort(all, all + k, all + experts, [&](int a, int b) {
        const uint32_t of_a = key_of(logits[a]), of_b = key_of(logits[b]);
        return of_a != of_b ? of_a > of_b : a < b;
    });
    std::copy_n(all, k, ids);
}

// The sum of exp(logit - best) over all experts, in 16 lanes.
float sum_of_exp(const float* logits, int experts, float best) {
    float lanes[16] = {};
    for (int e = 0; e < experts; ++e) lanes[e % 16] = lanes[e % 16] + exp_of(logits[e] - best);
    for (int half = 8; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) lanes[i] = lanes[i] + lanes[i + half];
    return lanes[0];
}

void weigh(float* weights, const int32_t* ids, const Route& op, const float* logits) {
    const int k = op.routing.chosen();
    const float best = logits[ids[0]];
    const float share = reciprocal(sum_of_exp(logits, op.logits.cols, best));
    float sum = 0;
    for (int i = 0; i < k; ++i) {
        weights[i] = exp_of(logits[ids[i]] - best) * share;
        sum = sum + weights[i];
    }
    if (!op.normalised) return;
    const float inverse = reciprocal(sum);
    for (int i = 0; i < k; ++i) weights[i] = weights[i] * inverse;
}

}  // namespace

template <>
void CpuBackend::execute(const Route& op) {
    FloatEnvironment environment;
    const Routing& to = op.routing;
    const int experts = op.logits.cols, k = to.chosen();
    for (int r = 0; r < to.rows(); ++r) {
        int32_t* ids = row<int32_t>(to.ids, r);
        choose(ids, k, row_f32(op.logits, r), experts);
        weigh(row_f32(to.weights, r), ids, op, row_f32(op.logits, r));
    }
    // Per expert: the number of its places, later where its next place goes.
    int32_t ends[kMaxExperts] = {};
    for (int r = 0; r < to.rows(); ++r)
        for (int i = 0; i < k; ++i) ++ends[row<int32_t>(to.ids, r)[i]];
    int t = 0, first = 0;
    for (int e = 0; e < experts; ++e) {
        const int end = first + ends[e];
        ends[e] = first;
        for (; first < end; first += row<ExpertTile>(to.tiles, t++)->count)
            *row<ExpertTile>(to.tiles, t) = {e, first, std::min(kExpertTileRows, end - first)};
    }
    for (; t < to.tiles.rows; ++t) *row<ExpertTile>(to.tiles, t) = {};
    int32_t* order = row<int32_t>(to.order, 0);
    for (int r = 0; r < to.rows(); ++r)
        for (int i = 0; i < k; ++i) order[ends[row<int32_t>(to.ids, r)[i]]++] = r * k + i;
}

}  // namespace aerie::cpu
