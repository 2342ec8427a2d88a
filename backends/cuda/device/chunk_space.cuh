// Data structures of the attention kernels: what a pair of a row and a query head attends to, how K
// and V lie in shared memory, and where the partial results of chunks go.
#pragma once

#include <cuda_runtime.h>

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/cache.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

constexpr int kChunk = kPageSize, kChunkBits = 6;
static_assert(kChunk == 1 << kChunkBits);
constexpr int kChunkThreads = 2 * kChunk;  // two per key: each has 8 of the 16 virtual lanes
constexpr int kChunkWarps = kChunkThreads / 32;
constexpr int kHalf = kLanes / 2;
constexpr int kMaxPairs = 8, kOwn = 4;  // pairs of a block, and pairs computed at a time
constexpr int kChunksAlone = 2;         // unshared chunks of a row, at most

// A slab is a tile of K or V in shared memory: 64 positions, 256 bytes each.
constexpr int kSlabQuads = 16;  // words of 16 bytes per position
constexpr int kSlabWords = kChunk * kSlabQuads;
template <class T>
constexpr int kQuadElements = int(sizeof(uint4) / sizeof(T));
template <class T>
constexpr int kSlabElements = kSlabQuads* kQuadElements<T>;
constexpr int kMaxSlabElements = kSlabElements<uint16_t>;
constexpr int kOutputGap = 4;

// Pairs of a block at most. If a head takes several slabs, all pairs are computed at a time, so
// that each slab is loaded once.
constexpr int most_pairs(int slab_elements, int head_dim) {
    return head_dim <= slab_elements ? kMaxPairs : kOwn;
}

// Partial results of chunks in scratch, each [rows, heads, chunks]: O of head_dim elements (`mix`),
// then the maximum of the scores, then the sum of P.
struct Partials {
    float *o, *max, *sum;
    int chunks, heads, head_dim;
    int window;  // as Attention::window

    Partials(float* memory, int rows, int chunks, const AttentionShape& shape, int window)
        : o(memory), chunks(chunks), heads(shape.heads), head_dim(shape.head_dim), window(window) {
        const size_t parts = size_t(rows) * size_t(heads) * size_t(chunks);
        max = o + parts * size_t(head_dim);
        sum = max + parts;
    }
    __device__ size_t place(int r, int head, int chunk) const {
        return (size_t(r) * size_t(heads) + size_t(head)) * size_t(chunks) + size_t(chunk);
    }
    __device__ int first(const Row& row) const { return first_seen(row.position, window); }
    __device__ int chunks_of(const Row& row) const {
        return row.position / kChunk - first(row) / kChunk + 1;
    }
};

struct AttentionTask {
    View<const float> qkv;
    View<const int32_t> rows;
    AttentionShape shape;
    CacheView cache;
    Partials partials;
    float scale;
    int own_heads, own_rows;  // heads and rows of a block; own_rows is a power of two
};

// How a chunk is merged into those before it: sum = sum * keep + chunk * weight, with keep =
// exp(maximum before - maximum now), weight = exp(the chunk's maximum - maximum now).
struct alignas(8) ChunkWeight {
    float keep, weight;

    __device__ ChunkWeight() = default;
    __device__ ChunkWeight(float before, float largest, float now)
        : keep(exp_of(before - now)), weight(exp_of(largest - now)) {}
    __device__ float add(float sum, float chunk) const { return sum * keep + chunk * weight; }
};

struct Range {
    int begin, end;
    __device__ bool has(int i) const { return i >= begin && i < end; }
    __device__ bool is_empty() const { return begin >= end; }
    // The positions within the chunk that begins at `before`, counted from there.
    __device__ Range within(int before) const {
        return {max(begin - before, 0), min(end - before, kChunk)};
    }
};

// A row and a query head. The row attends to positions [begin, end), to none if it is padding;
// positions before `plain` lie in the slots of the same numbers.
struct alignas(16) Pair {
    int begin, end, plain, sequence;
    unsigned query;  // index of its first element in qkv
    unsigned place;  // index in Partials that a chunk at position 0 would have
    int row, head;   // in the output

    // The positions within the chunk that begins at `before`, counted from there.
    __device__ Range within(int before) const { return Range{begin, end}.within(before); }
    __device__ unsigned place_of(int position) const { return place + unsigned(position / kChunk); }
    __device__ int chunks() const { return end > 0 ? (end - 1) / kChunk - begin / kChunk + 1 : 0; }
};

// Shared memory of a block, in both ways to compute.
struct ChunkSpace {
    SharedArray<uint4, 2 * kSlabWords> slabs;
    SharedArray<unsigned, 2 * kChunk> cached;  // cache rows of a chunk; then those of tails
    SharedArray<Pair, kMaxPairs> pairs;
    SharedArray<float, kMaxPairs * kChunkWarps> largest;  // maximum scores by pair and warp
    // O of the chunks merged so far, if the block has all chunks of its pairs.
    SharedArray<float, kMaxPairs*(kMaxSlabElements + kOutputGap)> o;
    SharedArray<float2, kMaxPairs> sums;  // maximum score, and sum of P

    // The maximum of a pair's scores over all warps.
    __device__ float largest_of(int pair) {
        const float4 of_warps = largest.template joined<float4>(pair * kChunkWarps);
        return larger(of_warps.w,
                      larger(of_warps.z, larger(of_warps.y, larger(of_warps.x, -infinity()))));
    }
    // Index in `mix`. The gap keeps the same element of several pairs in different banks, for warps
    // with several pairs.
    __device__ static int o_place(int pair, int element, int dim) {
        return pair * (dim + kOutputGap) + element;
    }
};

}  // namespace aerie::cuda
