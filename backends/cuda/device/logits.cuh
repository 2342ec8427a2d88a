// The work of a block of threads on one row of logits: it finds the best token, and the tokens that
// the filters keep.
//
// Every filter keeps the first tokens of one order (logit descending, id ascending, NaN last), so
// all filters together are one cut of it. Masses are sums of integers, so their order does not
// matter.
#pragma once

#include <cuda_runtime.h>

#include "backend/choice.h"
#include "cuda/device/arithmetic.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

constexpr int kChoiceThreads = 256;

// Sums and maxima over the block; all threads get the result.
class BlockReducer {
  public:
    using Space = SharedArray<uint64_t, kChoiceThreads + 2>;
    __device__ explicit BlockReducer(Space& space) : space_(space) {}

    __device__ uint64_t sum(uint64_t value) {
        return reduce(value, [](uint64_t a, uint64_t b) { return a + b; });
    }
    __device__ uint64_t largest(uint64_t value) {
        return reduce(value, [](uint64_t a, uint64_t b) { return a > b ? a : b; });
    }

  private:
    template <class Combine>
    __device__ uint64_t reduce(uint64_t value, const Combine& combine) {
        const int thread = int(threadIdx.x);
        space_[thread] = value;
        __syncthreads();
        turn_ ^= 1;  // the last result may still be read
        if (thread < 32) {
            for (int i = thread + 32; i < kChoiceThreads; i += 32)
                value = combine(value, uint64_t(space_[i]));
            for (int distance = 16; distance > 0; distance /= 2)
                value = combine(value, __shfl_xor_sync(kAllLanes, value, distance));
            if (thread == 0) space_[kChoiceThreads + turn_] = value;
        }
        __syncthreads();
        return space_[kChoiceThreads + turn_];
    }

    Space& space_;
    int turn_ = 0;
};

// A key by which descending order is logit descending, then id ascending; NaN is below all numbers.
__device__ inline uint64_t order_key(float logit, int id) {
    const uint32_t bits = __float_as_uint(logit + 0.0f);  // -0 becomes 0
    uint32_t ordered = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    if (logit != logit) ordered = 0;
    return uint64_t(ordered) << 32 | (0xffffffffu - uint32_t(id));
}
__device__ inline int id_of(uint64_t key) {
    return int(0xffffffffu - uint32_t(key));
}
__device__ inline float logit_of(uint64_t key) {
    const uint32_t ordered = uint32_t(key >> 32);
    if (ordered == 0) return not_a_number();
    return __uint_as_float(ordered & 0x80000000u ? ordered & 0x7fffffffu : ~ordered);
}
__device__ inline bool is_number(uint64_t key) {
    return key >> 32 != 0;
}

// How the tokens of some rows are chosen.
struct RulesView {
    View<const int32_t> block;  // one row for each, or one for all; none: argmax
    View<const int32_t> seen;

    // The rules of rows [first, first + count).
    RulesView(const Rules& rules, int first, int count)
        : block(rules.block && rules.block.rows > 1 ? rules.block.row_range(first, count)
                                                    : rules.block),
          seen(rules.seen) {}
    __device__ RowChoice of(int r) const {
        if (!block.data) return {};
        return *reinterpret_cast<const RowChoice*>(block[block.rows == 1 ? 0 : r]);
    }
};

struct LogitRow {
    const float* x;
    int vocab;
    float top;          // the best logit
    int top_id;         // -1: the row has no number
    float temperature;  // 0: only the best counts
    float scale;
    uint64_t cut;  // the smallest key that is kept

    __device__ float kept(float logit, int id) const {
        return cut == 0 || order_key(logit, id) >= cut ? logit : -infinity();
    }
    __device__ float kept(int id) const { return kept(x[id], id); }
};

constexpr float kMassOne = 0x1p40f;  // the mass of the best token

__device__ inline uint64_t mass_of_logit(const LogitRow& row, float logit, float scale) {
    const float z = (logit - row.top) * scale;
    return z <= infinity() ? uint64_t(exp_of(z) * kMassOne) : 0;
}
__device__ inline uint64_t mass_of(const LogitRow& row, int id, float scale) {
    return mass_of_logit(row, row.x[id], scale);
}

// The mass of all tokens that are kept.
__device__ inline uint64_t total_mass(const LogitRow& row, float scale, BlockReducer& reducer) {
    uint64_t mass = 0;
    for (int id = int(threadIdx.x); id < row.vocab; id += kChoiceThreads)
        if (order_key(row.x[id], id) >= row.cut) mass += mass_of(row, id, scale);
    return reducer.sum(mass);
}

// A row's numbers, split at a key: the total weight of the keys from there on, the smallest of
// these, and the largest key before them.
struct KeySplit {
    uint64_t weight, least, before;
};
template <class Weight>
__device__ KeySplit split_keys(const LogitRow& row, uint64_t at, BlockReducer& reducer,
                               const Weight& weight) {
    KeySplit mine{0, ~uint64_t(0), 0};
    for (int id = int(threadIdx.x); id < row.vocab; id += kChoiceThreads) {
        const uint64_t key = order_key(row.x[id], id);
        if (!is_number(key)) continue;
        if (key >= at) {
            mine.weight += weight(id);
            mine.least = key < mine.least ? key : mine.least;
        } else {
            mine.before = key > mine.before ? key : mine.before;
        }
    }
    return {reducer.sum(mine.weight), ~reducer.largest(~mine.least), reducer.largest(mine.before)};
}

// The largest key such that the weights of the keys from it on sum to at least `goal`; 0 if the
// weights of all keys do not. Bisects between keys that exist, so the number of rounds is about the
// logarithm of their number.
template <class Weight>
__device__ uint64_t find_key(const LogitRow& row, double goal, BlockReducer& reducer,
                             const Weight& weight) {
    const KeySplit all = split_keys(row, 0, reducer, weight);
    if (!(double(all.weight) >= goal)) return 0;
    uint64_t low = all.least, high = order_key(row.top, row.top_id);
    while (low < high) {
        const uint64_t middle = high - (high - low) / 2;
        const KeySplit split = split_keys(row, middle, reducer, weight);
        if (double(split.weight) >= goal)
            low = split.least;
        else
            high = split.before;
    }
    return low;
}

__device__ inline uint64_t find_cut(LogitRow row, const RowChoice& rule, BlockReducer& reducer) {
    const uint64_t top_key = order_key(row.top, row.top_id);
    if (rule.top_k > 0 && rule.top_k < row.vocab)
        row.cut = find_key(row, rule.top_k, reducer, [](int) { return 1; });
    if (rule.top_p < 1) {
        const double goal = double(rule.top_p) * double(total_mass(row, row.scale, reducer));
        const uint64_t key =
            find_key(row, goal, reducer, [&](int id) { return mass_of(row, id, row.scale); });
        if (key > row.cut) row.cut = key < top_key ? key : top_key;
    }
    if (rule.min_p_cutoff > -double(infinity())) {
        const float logit = __double2float_ru(double(row.top) + rule.min_p_cutoff);
        const uint64_t key = order_key(logit, 0x7fffffff);
        if (key > row.cut) row.cut = key;
    }
    return row.cut;
}

// A LogitRow without filters, from the best key of the row.
__device__ inline LogitRow row_of(const float* x, int vocab, const RowChoice& rule, uint64_t best) {
    LogitRow row{x, vocab, -infinity(), -1, 0, 0, 0};
    if (!is_number(best)) return row;
    row.top_id = id_of(best);
    row.top = x[row.top_id];
    // If the best logit is infinite there are no masses: that token is simply taken.
    if (fabsf(row.top) < infinity()) {
        row.temperature = rule.temperature;
        row.scale = rule.scale;
    }
    return row;
}

__device__ inline LogitRow find_top(const float* x, int vocab, const RowChoice& rule,
                                    BlockReducer& reducer) {
    uint64_t best = 0;
    for (int id = int(threadIdx.x); id < vocab; id += kChoiceThreads) {
        const uint64_t key = order_key(x[id], id);
        if (key > best) best = key;
    }
    return row_of(x, vocab, rule, reducer.largest(best));
}

// The row with its filters; temperature 0 keeps all tokens, since only the best counts.
__device__ inline LogitRow processed_row(const float* x, int vocab, const RowChoice& rule,
                                         BlockReducer& reducer) {
    LogitRow row = find_top(x, vocab, rule, reducer);
    if (row.temperature > 0) row.cut = find_cut(row, rule, reducer);
    return row;
}

}  // namespace aerie::cuda
