// Merges the chunks of a row and a head in ascending order; a thread has an element of O.
#pragma once

#include "cuda/device/chunk_space.cuh"
#include "cuda/device/quantise.cuh"

namespace aerie::cuda {

constexpr int kMergeThreads = kChunkThreads;
constexpr int kMaxTogether = kOwn;  // pairs of a row and a head at a time

struct MergeSpace {
    SharedArray<float, kMergeThreads> largest;
    SharedArray<ChunkWeight, kMergeThreads> weights;
    SharedArray<float, kMergeThreads> sums;
    SharedArray<float, kMaxTogether> before;  // maximum of all chunks so far, by pair
};

// Index of a pair's first chunk in Partials, and the number of its chunks.
struct ChunksOfPair {
    unsigned place;
    int count;
};

template <int pairs>
class Merge {
  public:
    __device__ Merge(MergeSpace& space, const Partials& partials,
                     const ChunksOfPair (&chunks)[pairs])
        : space_(space), partials_(partials), chunks_(chunks) {}

    // Computes element `in_head` of O for each pair; 0 if it has no chunks. The whole block calls
    // it.
    __device__ void run(float (&mixed)[pairs], int in_head) {
        const auto dim = unsigned(partials_.head_dim);
        float sums[pairs] = {};
        int most = 0;
#pragma unroll
        for (int p = 0; p < pairs; ++p) mixed[p] = 0, most = max(most, chunks_[p].count);
        for (int first = 0; first < most; first += kAtOnce) {
            weigh(first);
            const int count = min(most - first, kAtOnce);
            for (int chunk = 0; chunk < count; chunk += kAhead) {
                float ahead[pairs][kAhead];
#pragma unroll
                for (int p = 0; p < pairs; ++p)
#pragma unroll
                    for (int i = 0; i < kAhead; ++i) {
                        const int at = max(min(first + chunk + i, chunks_[p].count - 1), 0);
                        ahead[p][i] = partials_.o[size_t(chunks_[p].place + unsigned(at)) * dim +
                                                  unsigned(in_head)];
                    }
#pragma unroll
                for (int p = 0; p < pairs; ++p)
#pragma unroll
                    for (int i = 0; i < kAhead; ++i) {
                        const int place = p * kAtOnce + chunk + i;
                        const ChunkWeight weight = space_.weights[place];
                        // A select, not a branch, or the loads would be issued one by one.
                        const bool here = first + chunk + i < chunks_[p].count;
                        const float sum = weight.add(sums[p], space_.sums[place]);
                        const float more = weight.add(mixed[p], ahead[p][i]);
                        sums[p] = here ? sum : sums[p];
                        mixed[p] = here ? more : mixed[p];
                    }
            }
            __syncthreads();
        }
#pragma unroll
        for (int p = 0; p < pairs; ++p)
            mixed[p] = chunks_[p].count > 0 ? mixed[p] * reciprocal(sums[p]) : 0.0f;
    }

  private:
    static constexpr int kAtOnce = kMergeThreads / pairs;  // chunks per pair and round
    // Chunks that are loaded before the first of them is merged.
    static constexpr int kAhead = pairs == 1 ? 8 : 4;

    // Computes the weights of kAtOnce chunks of each pair, one thread per chunk.
    __device__ void weigh(int first) {
        const int thread = int(threadIdx.x), pair = thread / kAtOnce, i = thread % kAtOnce;
        ChunksOfPair of_pair = chunks_[0];
#pragma unroll
        for (int p = 1; p < pairs; ++p)
            if (p == pair) of_pair = chunks_[p];
        const int count = of_pair.count - first;
        const unsigned at = of_pair.place + unsigned(first + i);
        const float chunk_largest = i < count ? partials_.max[at] : -infinity();
        const float sum = i < count ? partials_.sum[at] : 0.0f;
        float before = first > 0 ? float(space_.before[pair]) : -infinity();
        space_.largest[thread] = chunk_largest;
        __syncthreads();
        for (int j = 0; j < min(i, count); ++j)
            before = larger(space_.largest[pair * kAtOnce + j], before);
        const float now = larger(chunk_largest, before);
        space_.weights[thread] = ChunkWeight(before, chunk_largest, now);
        space_.sums[thread] = sum;
        if (i == kAtOnce - 1) space_.before[pair] = now;
        __syncthreads();
    }

    MergeSpace& space_;
    const Partials& partials_;
    const ChunksOfPair (&chunks_)[pairs];
};

}  // namespace aerie::cuda
