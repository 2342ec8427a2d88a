// Attention. The history is cut into chunks of 64 logical positions. One kernel takes each chunk by
// itself: its maximum, its sum and its mix of values; a second one merges a row's chunks in order.
// Slots only say where to load from. A row's chunks are counted from the first that it sees.
//
// A block has some query heads of one kv head, and some rows. Of a chunk that lies in the same
// slots for all of its rows (what is committed, or a prompt) it reads keys and values once; of the
// others, the last ones of a tree, once a row. A pair of a row and a head has the same operations
// in the same order either way.
#include <algorithm>
#include <bit>
#include <cmath>

#include "cuda/backend.h"
#include "cuda/device/chunk.cuh"
#include "cuda/device/packed.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kBlocks = 1024;  // that keep every device busy

template <class T>
__global__ void __launch_bounds__(kChunkThreads, 4) chunk_kernel(AttentionTask task) {
    __shared__ ChunkSpace space;
    begin_beside();
    ChunkBlock<T>(space, task).run();
}

// How a chunk comes into the sum: out = out * keep + chunk * weight.
struct ChunkWeight {
    float keep, weight, sum;
};

constexpr int kMergeThreads = 128;
constexpr int kMostTogether = 2;  // heads whose columns make whole groups
constexpr int kAhead = 8;         // chunks that are read before the first of them is added

struct MergeSpace {
    SharedArray<float, kMergeThreads> largest;
    SharedArray<ChunkWeight, kMostTogether * kMergeThreads> weights;
    SharedArray<float, kMostTogether> before;  // the largest of all chunks so far
};

// A thread a chunk: what is kept of those before it, and how much of it comes.
__device__ void weigh_chunks(MergeSpace& space, const Partials& partials, int r, int head,
                             int first, int count, int place) {
    const int i = int(threadIdx.x);
    const size_t at = partials.place(r, head, first + i);
    const float mine = i < count ? partials.max[at] : -infinity();
    float before = first > 0 ? float(space.before[place]) : -infinity();
    space.largest[i] = mine;
    __syncthreads();
    for (int n = 0; n < i && n < count; ++n) before = larger(space.largest[n], before);
    const float now = larger(mine, before);
    if (i < count)
        space.weights[place * kMergeThreads + i] = {exp_of(before - now), exp_of(mine - now),
                                                    partials.sum[at]};
    if (i == count - 1) space.before[place] = now;
    __syncthreads();
}

// A thread a column of some heads, over all their chunks. `together` heads are a unit, and `across`
// blocks along x have one.
__global__ void __launch_bounds__(kMergeThreads)
    merge_kernel(ActivationView out, View<const int32_t> rows, Partials partials, int together,
                 int across) {
    __shared__ MergeSpace space;
    begin_beside();
    const int r = int(blockIdx.y), unit = int(blockIdx.x) / across, dim = partials.head_dim;
    const int width = together * dim, lane = int(threadIdx.x) % kGroup;
    const int in_unit = int(blockIdx.x) % across * kMergeThreads + int(threadIdx.x);
    const int column = unit * width + in_unit;
    const bool here = in_unit < width && column < out.cols;
    const int place = min(in_unit, width - 1) / dim, head = unit * together + place;
    const Row& row = *reinterpret_cast<const Row*>(rows[r]);
    const int chunks = row.slot < 0 ? 0 : partials.chunks_of(row);
    const float* mix = partials.mix + partials.place(r, head, 0) * size_t(dim) + in_unit % dim;
    float mixed = 0, sum = 0;
    for (int first = 0; first < chunks; first += kMergeThreads) {
        const int count = min(chunks - first, kMergeThreads);
        for (int n = 0; n < together && unit * together + n < partials.heads; ++n)
            weigh_chunks(space, partials, r, unit * together + n, first, count, n);
        for (int chunk = 0; here && chunk < count; chunk += kAhead) {
            float ahead[kAhead];
#pragma unroll
            for (int i = 0; i < kAhead; ++i)
                ahead[i] = mix[size_t(first + min(chunk + i, count - 1)) * size_t(dim)];
#pragma unroll
            for (int i = 0; i < kAhead; ++i) {
                if (chunk + i >= count) break;
                const ChunkWeight its = space.weights[place * kMergeThreads + chunk + i];
                sum = sum * its.keep + its.sum * its.weight;
                mixed = mixed * its.keep + ahead[i] * its.weight;
            }
        }
        __syncthreads();
    }
    mixed = chunks > 0 ? mixed * reciprocal(sum) : 0.0f;
    if (in_unit - lane < width)  // a whole warp
        put_activations(out, r, column - lane, here ? mixed : 0.0f);
}

// Query heads of a kv head that a block takes: as many as divide them.
int heads_together(int queries, int most) {
    int heads = std::min(queries, most);
    while (queries % heads != 0) --heads;
    return heads;
}

}  // namespace

template <>
void CudaBackend::execute(const Attention& op) {
    const Tensor &out = op.out, &qkv = op.qkv;
    const AttentionShape& shape = op.shape;
    const KvLayer& kv = op.kv;
    if (shape.head_dim > kMostHeadDim)
        return queue_->refuse("attention", "heads of more than 256 elements");
    const int pages = kv.page_table.cols, columns = shape.heads * shape.head_dim;
    const int chunks = op.window > 0 ? std::min(pages, chunks_of_window(op.window)) : pages;
    const size_t row_floats = size_t(chunks) * size_t(columns + 2 * shape.heads);
    const int most = int(std::min(partial_floats_ / row_floats, size_t(qkv.rows)));
    if (most == 0) return queue_->refuse("attention", "a context beyond what was reserved");
    const int step = tiles_of(qkv.rows, tiles_of(qkv.rows, most));
    const bool f16 = kv.k.dtype == DType::F16;
    const int pairs =
        most_pairs(f16 ? kSlabElements<uint16_t> : kSlabElements<float>, shape.head_dim);
    const int own_heads = heads_together(shape.heads / shape.kv_heads, pairs);
    const int together = shape.head_dim % kGroup == 0 ? 1 : kMostTogether;
    const int across = tiles_of(together * shape.head_dim, kMergeThreads);
    for (int first = 0; first < qkv.rows; first += step) {
        const int count = std::min(step, qkv.rows - first);
        const int own_rows = std::min(int(std::bit_ceil(unsigned(count))), pairs / own_heads);
        const Partials partials(partials_, count, chunks, shape, op.window);
        const Tensor block = op.rows.range(first, count).block;
        const AttentionTask task{qkv.row_range(first, count),
                                 block,
                                 shape,
                                 CacheView(kv),
                                 partials,
                                 float(1.0 / std::sqrt(double(shape.head_dim))),
                                 own_heads,
                                 own_rows};
        const int wide = shape.heads / own_heads, high = tiles_of(count, own_rows);
        const int deep = std::clamp(kBlocks / (wide * high), 1, chunks + kChunksAlone * own_rows);
        launch_beside(f16 ? chunk_kernel<uint16_t> : chunk_kernel<float>,
                      {dim3(unsigned(wide), unsigned(high), unsigned(deep)), dim3(kChunkThreads),
                       *queue_, "attention"},
                      task);
        launch_beside(merge_kernel,
                      {dim3(unsigned(tiles_of(shape.heads, together) * across), unsigned(count)),
                       dim3(kMergeThreads), *queue_, "attention_merge"},
                      out.row_range(first, count), block, partials, together, across);
    }
}

}  // namespace aerie::cuda
