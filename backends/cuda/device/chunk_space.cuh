// What attention's kernels know of a chunk: what a pair of a row and a query head sees of it, where
// keys and values lie in shared memory, and where what became of them goes.
#pragma once

#include <cuda_runtime.h>

#include "cuda/device/arithmetic.cuh"
#include "cuda/device/cache.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"

namespace aerie::cuda {

constexpr int kChunk = kPageSize;
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
};

// A row and a query head. The row sees positions [begin, end), none where it is padding; those
// before `plain` lie in slots of their numbers.
struct alignas(16) Pair {
    int begin, end, plain, sequence;
    unsigned query;  // its first element in qkv
    unsigned place;  // in Partials, if its chunks were counted from position 0
    int row, head;   // of the output

    // Of the chunk that begins at position `before`.
    __device__ Range within(int before) const {
        return {max(begin - before, 0), min(end - before, kChunk)};
    }
    __device__ unsigned place_of(int position) const { return place + unsigned(position / kChunk); }
    __device__ int chunks() const {
        return end > 0 ? (end - 1) / kChunk - begin / kChunk + 1 : 0;
    }
};

struct ChunkSpace {
    SharedArray<uint4, 2 * kSlabWords> slabs;
    SharedArray<float4, kMostPairs * kMostSlabElements / 4> queries;  // of a slab's elements
    SharedArray<float, kChunk * kOwn> scores;                         // exponentials, of each key
    SharedArray<float, kOwn * kChunkWarps> largest;                   // of each pair those of warps
    SharedArray<unsigned, 2 * kChunk> cached;  // rows of the cache; then those of tails
    SharedArray<Pair, kMostPairs> pairs;
    // Of the chunks so far, where a block has all of its pairs', and how the last one came to them.
    SharedArray<float, kMostPairs * kMostSlabElements> mix;
    SharedArray<float2, kMostPairs> sums;  // the largest score, and the sum
    SharedArray<ChunkWeight, kOwn> weights;
};

// Quads of keys lie so that 4 keys of two quads each do not meet in a bank. Of values a warp reads
// a row, wherever it lies.
constexpr int kTurned = 4;  // positions, then they lie alike again
__device__ inline int key_place(int slot, int position, int quad) {
    return slot * kSlabWords + position * kSlabQuads + (quad ^ position % kTurned * 2);
}
__device__ inline int value_place(int slot, int position, int quad) {
    return slot * kSlabWords + position * kSlabQuads + quad;
}

// 8 elements from `8 * eighth` on.
template <class T>
__device__ void take_half(float (&to)[kHalf], ChunkSpace& space, int slot, int position,
                          int eighth) {
    if constexpr (sizeof(T) == 2) {
        const uint4 quad = space.slabs[key_place(slot, position, eighth)];
        const unsigned words[] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
        for (int i = 0; i < kHalf; ++i) to[i] = from_f16(uint16_t(words[i / 2] >> i % 2 * 16));
    } else {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const uint4 quad = space.slabs[key_place(slot, position, eighth * 2 + j)];
            const unsigned words[] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) to[j * 4 + i] = __uint_as_float(words[i]);
        }
    }
}

__device__ inline float value_of(uint16_t bits) {
    return from_f16(bits);
}
__device__ inline float value_of(float value) {
    return value;
}

// The fixed tree over 16 lanes, of which two neighbours have 8 each: the first gets the sums of the
// first half of `own`, the second those of the others; of one both get it.
template <int own, int mine>
__device__ inline void sums_of_both(float (&sums)[mine], const float (&lanes)[own][kHalf]) {
    const int half = int(threadIdx.x) % 2;
#pragma unroll
    for (int j = 0; j < mine; ++j) {
        float both[kHalf];
#pragma unroll
        for (int i = 0; i < kHalf; ++i) {
            const float first = lanes[j][i], second = lanes[own - mine + j][i];
            both[i] = (half ? second : first) +
                      __shfl_xor_sync(kAllLanes, half ? first : second, 1);
        }
        sums[j] = ((both[0] + both[4]) + (both[2] + both[6])) +
                  ((both[1] + both[5]) + (both[3] + both[7]));
    }
}

}  // namespace aerie::cuda
