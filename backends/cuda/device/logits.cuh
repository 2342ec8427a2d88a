// A block of threads and one row of logits: its best, and what the filters keep of it.
//
// Every filter keeps a prefix of one order (logit descending, id ascending, NaN last), so what they
// keep together is one cut of it. Masses are sums of integers: their order does not matter.
#pragma once

#include <cuda_runtime.h>

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

constexpr int kChoiceThreads = 256;

// Sums and maxima over the block; all threads get them.
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

// Descends with the logit and then ascends with the id; NaN is below every number.
__device__ inline uint64_t order_key(float logit, int id) {
    const uint32_t bits = __float_as_uint(logit + 0.0f);  // no -0
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

// Filters as the kernels take them: logarithms are made on the host.
struct Cuts {
    double temperature;
    int top_k;
    float top_p;
    bool min_p;
    double log_min_p;
};

struct LogitRow {
    const float* x;
    int vocab;
    float top;           // the best logit
    int top_id;          // -1: no number at all
    double temperature;  // 0: only the best counts
    uint64_t cut;        // the smallest key that is kept

    __device__ float scale() const { return float(fmin(1 / temperature, 3e38)); }
    __device__ float kept(int id) const {
        return cut == 0 || order_key(x[id], id) >= cut ? x[id] : -infinity();
    }
};

constexpr float kMassOne = 0x1p40f;  // the mass of the best token

__device__ inline uint64_t mass_of(const LogitRow& row, int id, float scale) {
    const float z = (row.x[id] - row.top) * scale;
    return z <= infinity() ? uint64_t(exp_of(z) * kMassOne) : 0;
}

// Mass of what is kept.
__device__ inline uint64_t total_mass(const LogitRow& row, float scale, BlockReducer& reducer) {
    uint64_t mass = 0;
    for (int id = int(threadIdx.x); id < row.vocab; id += kChoiceThreads)
        if (order_key(row.x[id], id) >= row.cut) mass += mass_of(row, id, scale);
    return reducer.sum(mass);
}

// The largest key such that weight(id) of the keys from there on come to `goal` at least; 0 where
// all of them do not.
template <class Weight>
__device__ uint64_t find_key(const LogitRow& row, double goal, BlockReducer& reducer,
                             const Weight& weight) {
    const int id_bits = 32 - __clz(row.vocab);
    uint64_t key = 0;
    for (int bit = 63; bit >= 0; --bit) {
        // Above them, the bits of all ids are the same.
        if (bit == 31) key |= 0xffffffffu & ~((uint64_t(1) << id_bits) - 1), bit = id_bits - 1;
        const uint64_t next = key | uint64_t(1) << bit;
        uint64_t sum = 0;
        for (int id = int(threadIdx.x); id < row.vocab; id += kChoiceThreads) {
            const uint64_t here = order_key(row.x[id], id);
            if (here >= next && is_number(here)) sum += weight(id);
        }
        if (double(reducer.sum(sum)) >= goal) key = next;
    }
    return is_number(key) ? key : 0;
}

__device__ inline uint64_t find_cut(LogitRow row, const Cuts& cuts, BlockReducer& reducer) {
    const uint64_t top_key = order_key(row.top, row.top_id);
    if (cuts.top_k > 0 && cuts.top_k < row.vocab)
        row.cut = find_key(row, cuts.top_k, reducer, [](int) { return 1; });
    if (cuts.top_p < 1) {
        const float scale = row.scale();
        const double goal = double(cuts.top_p) * double(total_mass(row, scale, reducer));
        const uint64_t key =
            find_key(row, goal, reducer, [&](int id) { return mass_of(row, id, scale); });
        if (key > row.cut) row.cut = key < top_key ? key : top_key;
    }
    if (cuts.min_p) {
        const double least = double(row.top) + row.temperature * cuts.log_min_p;
        const float logit = __double2float_ru(least);
        const uint64_t key = order_key(logit, 0x7fffffff);
        if (key > row.cut) row.cut = key;
    }
    return row.cut;
}

// The row whose best key is known.
__device__ inline LogitRow row_of(const float* x, int vocab, const Cuts& cuts, uint64_t best) {
    LogitRow row{x, vocab, -infinity(), -1, 0, 0};
    if (!is_number(best)) return row;
    row.top_id = id_of(best);
    row.top = x[row.top_id];
    // Where the best is infinite there is nothing to weigh: it is simply taken.
    if (fabsf(row.top) < infinity()) row.temperature = cuts.temperature;
    return row;
}

__device__ inline LogitRow find_top(const float* x, int vocab, const Cuts& cuts,
                                    BlockReducer& reducer) {
    uint64_t best = 0;
    for (int id = int(threadIdx.x); id < vocab; id += kChoiceThreads) {
        const uint64_t key = order_key(x[id], id);
        if (key > best) best = key;
    }
    return row_of(x, vocab, cuts, reducer.largest(best));
}

// The row with its filters; temperature 0 keeps all, since only the best counts.
__device__ inline LogitRow processed_row(const float* x, int vocab, const Cuts& cuts,
                                         BlockReducer& reducer) {
    LogitRow row = find_top(x, vocab, cuts, reducer);
    if (row.temperature > 0) row.cut = find_cut(row, cuts, reducer);
    return row;
}

}  // namespace aerie::cuda
