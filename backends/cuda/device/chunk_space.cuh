// What attention's kernels know of a chunk: what a pair of a row and a query head sees of it, where
// keys and values lie in shared memory, and where what became of them goes.
#pragma once

#include <cuda_runtime.h>

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/cache.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

constexpr int kChunk = kPageSize, kChunkBits = 6;
static_assert(kChunk == 1 << kChunkBits);
constexpr int kChunkThreads = 2 * kChunk;  // two a key: each has 8 of the 16 virtual lanes
constexpr int kChunkWarps = kChunkThreads / 32;
constexpr int kHalf = kLanes / 2;
constexpr int kMostPairs = 8, kOwn = 4;   // pairs of a block, and those it takes at a time
constexpr int kChunksAlone = 2;           // of a row at most: where its draft ancestors lie

// Of keys or values, 256 bytes a position.
constexpr int kSlabQuads = 16;  // of 16 bytes, a position
constexpr int kSlabWords = kChunk * kSlabQuads;
template <class T>
constexpr int kQuadElements = int(sizeof(uint4) / sizeof(T));
template <class T>
constexpr int kSlabElements = kSlabQuads* kQuadElements<T>;
constexpr int kMostSlabElements = kSlabElements<uint16_t>;
constexpr int kMixGap = 4;

// Pairs of a block: where a head takes several slabs they come but once.
constexpr int most_pairs(int slab_elements, int head_dim) {
    return head_dim <= slab_elements ? kMostPairs : kOwn;
}

// What became of the chunks: of [rows, heads, chunks] the mixes of head_dim elements, then maxima,
// then sums.
struct Partials {
    float *mix, *max, *sum;
    int chunks, heads, head_dim;
    int window;  // as in Attention

    Partials(float* memory, int rows, int chunks, const AttentionShape& shape, int window)
        : mix(memory),
          chunks(chunks),
          heads(shape.heads),
          head_dim(shape.head_dim),
          window(window) {
        const size_t parts = size_t(rows) * size_t(heads) * size_t(chunks);
        max = mix + parts * size_t(head_dim);
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
    int own_heads, own_rows;  // of a block; rows: a power of two
};

// How a chunk comes to those before it, in their order: sum = sum * keep + chunk * weight.
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
    // Of the chunk that begins at position `before`.
    __device__ Range within(int before) const {
        return {max(begin - before, 0), min(end - before, kChunk)};
    }
};

// A row and a query head. The row sees positions [begin, end), none where it is padding; those
// before `plain` lie in slots of their numbers.
struct alignas(16) Pair {
    int begin, end, plain, sequence;
    unsigned query;  // its first element in qkv
    unsigned place;  // in Partials, if its chunks were counted from position 0
    int row, head;   // of the output

    // Of the chunk that begins at position `before`.
    __device__ Range within(int before) const { return Range{begin, end}.within(before); }
    __device__ unsigned place_of(int position) const { return place + unsigned(position / kChunk); }
    __device__ int chunks() const {
        return end > 0 ? (end - 1) / kChunk - begin / kChunk + 1 : 0;
    }
};

// Of a block, however it computes.
struct ChunkSpace {
    SharedArray<uint4, 2 * kSlabWords> slabs;
    SharedArray<unsigned, 2 * kChunk> cached;  // rows of the cache; then those of tails
    SharedArray<Pair, kMostPairs> pairs;
    SharedArray<float, kMostPairs * kChunkWarps> largest;  // of each pair those of warps
    // Of the chunks so far, where a block has all of its pairs'.
    SharedArray<float, kMostPairs*(kMostSlabElements + kMixGap)> mix;
    SharedArray<float2, kMostPairs> sums;  // the largest score, and the sum

    // Of a pair's scores.
    __device__ float largest_of(int pair) {
        const float4 its = largest.template joined<float4>(pair * kChunkWarps);
        return larger(its.w, larger(its.z, larger(its.y, larger(its.x, -infinity()))));
    }
    // Where the mix of a pair's element is. The gap is for those who have an element of several
    // pairs.
    __device__ static int mix_place(int pair, int element, int dim) {
        return pair * (dim + kMixGap) + element;
    }
};

}  // namespace aerie::cuda
