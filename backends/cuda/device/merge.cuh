// Attention's chunks of a row come together, in their order: a thread has a column.
#pragma once

#include "cuda/device/chunk_space.cuh"
#include "cuda/device/quantise.cuh"

namespace aerie::cuda {

// How a chunk comes into the sum: out = out * keep + chunk * weight.
struct ChunkWeight {
    float keep, weight, sum;
};

constexpr int kMergeThreads = kChunkThreads;
constexpr int kWeighed = 2 * kMergeThreads;  // of some heads, some chunks of each
constexpr int kMostTogether = 4;             // heads
constexpr int kAhead = 8;  // chunks that are read before the first of them is added

struct MergeSpace {
    SharedArray<float, kMergeThreads> largest;
    SharedArray<ChunkWeight, kWeighed> weights;
    SharedArray<float, kMostTogether> before;  // the largest of all chunks so far
};

class Merge {
  public:
    // Of row r, and `together` heads from `first_head` on.
    __device__ Merge(MergeSpace& space, const Partials& partials, int r, int first_head,
                     int together)
        : space_(space), partials_(partials), r_(r), first_head_(first_head), together_(together) {}

    // Of `heads` heads from number `place` among those on, the mixes of element `in_head`; others
    // come along where a thread has none.
    template <int heads>
    __device__ void run(float (&mixed)[heads], int chunks, int place, int in_head) {
        const int dim = partials_.head_dim, most = min(kWeighed / together_, kMergeThreads);
        const float* mix =
            partials_.mix + partials_.place(r_, first_head_ + place, 0) * size_t(dim) + in_head;
        const size_t next_head = size_t(partials_.chunks) * size_t(dim);
        float sums[heads] = {};
#pragma unroll
        for (int h = 0; h < heads; ++h) mixed[h] = 0;
        for (int first = 0; first < chunks; first += most) {
            const int count = min(chunks - first, most);
            for (int n = 0; n < together_; ++n) weigh(first, count, n, n * most);
            for (int chunk = 0; chunk < count; chunk += kAhead) {
                float ahead[heads][kAhead];
#pragma unroll
                for (int i = 0; i < kAhead; ++i)
#pragma unroll
                    for (int h = 0; h < heads; ++h)
                        ahead[h][i] = mix[size_t(h) * next_head +
                                          size_t(first + min(chunk + i, count - 1)) * size_t(dim)];
#pragma unroll
                for (int i = 0; i < kAhead; ++i) {
                    // Chosen and not jumped over, or the loads would come one by one.
                    const bool here = chunk + i < count;
#pragma unroll
                    for (int h = 0; h < heads; ++h) {
                        const ChunkWeight its =
                            space_.weights[(place + h) * most + min(chunk + i, count - 1)];
                        const float sum = sums[h] * its.keep + its.sum * its.weight;
                        const float more = mixed[h] * its.keep + ahead[h][i] * its.weight;
                        sums[h] = here ? sum : sums[h];
                        mixed[h] = here ? more : mixed[h];
                    }
                }
            }
            __syncthreads();
        }
#pragma unroll
        for (int h = 0; h < heads; ++h)
            mixed[h] = chunks > 0 ? mixed[h] * reciprocal(sums[h]) : 0.0f;
    }

  private:
    // A thread a chunk: what is kept of those before it, and how much of it comes.
    __device__ void weigh(int first, int count, int n, int to) {
        const int i = int(threadIdx.x), head = first_head_ + n;
        const bool is_head = head < partials_.heads;
        const size_t at = partials_.place(r_, head, first + i);
        const float mine = is_head && i < count ? partials_.max[at] : -infinity();
        float before = first > 0 ? float(space_.before[n]) : -infinity();
        space_.largest[i] = mine;
        __syncthreads();
        for (int j = 0; j < i && j < count; ++j) before = larger(space_.largest[j], before);
        const float now = larger(mine, before);
        if (i < count)
            space_.weights[to + i] = {exp_of(before - now), exp_of(mine - now),
                                      is_head ? partials_.sum[at] : 0.0f};
        if (i == count - 1) space_.before[n] = now;
        __syncthreads();
    }

    MergeSpace& space_;
    const Partials& partials_;
    int r_, first_head_, together_;
};

}  // namespace aerie::cuda
