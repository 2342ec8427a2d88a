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
#include "cuda/device/columns.cuh"
#include "cuda/device/last_block.cuh"
#include "cuda/device/merge.cuh"
#include "cuda/launch.h"
#include "cuda/split.h"

namespace aerie::cuda {

namespace {

constexpr int kAtOnce = 4;    // blocks that a multiprocessor has registers for
constexpr int kFewRows = 16;  // so many pass a chunk sooner in several blocks that all read it

constexpr int kPairedHeads = 2;  // whose columns make whole groups together

// Where one row is all, the last block of its heads merges their chunks.
struct AttentionTail {
    unsigned* arrived;  // a ticket for each block along x
    ActivationView out;
    float* peaks;  // of each warp of these blocks, for the row's reader; or null
};
constexpr int kMergeWarps = kMergeThreads / 32;

template <int heads>
__device__ void merge_heads(MergeSpace& space, const AttentionTask& task,
                            const AttentionTail& tail) {
    const int first = int(blockIdx.x) * heads, dim = task.shape.head_dim;
    const Row& row = *reinterpret_cast<const Row*>(task.rows[0]);
    const int chunks = row.slot < 0 ? 0 : task.partials.chunks_of(row);
    unsigned most = 0;
    for (int element = int(threadIdx.x); element < tiles_of(dim, kMergeThreads) * kMergeThreads;
         element += kMergeThreads) {
        float mixed[heads];
        Merge(space, task.partials, 0, first, heads)
            .run<heads>(mixed, chunks, 0, min(element, dim - 1));
        if (element >= dim) continue;  // a whole warp
#pragma unroll
        for (int h = 0; h < heads; ++h) {
            put_activations(tail.out, 0, (first + h) * dim + element - element % kGroup, mixed[h]);
            most = max(most, magnitude_of(mixed[h]));
        }
    }
    if (tail.peaks)
        leave_peak(tail.peaks + int(blockIdx.x) * kMergeWarps + int(threadIdx.x) / 32, most);
}

template <class T>
__global__ void __launch_bounds__(kChunkThreads, kAtOnce) chunk_kernel(AttentionTask task) {
    __shared__ ChunkSpace space;
    begin_beside();
    ChunkBlock<T>(space, task).run();
}

template <class T>
__global__ void __launch_bounds__(kChunkThreads, kAtOnce)
    row_kernel(AttentionTask task, AttentionTail tail) {
    __shared__ ChunkSpace space;
    begin_beside();
    ChunkBlock<T>(space, task).run();
    if (!is_last_block(tail.arrived + blockIdx.x, gridDim.z)) return;
    __shared__ MergeSpace merge;
    switch (task.own_heads) {
        case 1:
            merge_heads<1>(merge, task, tail);
            break;
        case 2:
            merge_heads<2>(merge, task, tail);
            break;
        case 4:
            merge_heads<4>(merge, task, tail);
            break;
    }
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
    const int last = min(width, out.cols - unit * width) - 1, at = min(in_unit, last);
    const Row& row = *reinterpret_cast<const Row*>(rows[r]);
    float mixed[1];
    Merge(space, partials, r, unit * together, together)
        .run<1>(mixed, row.slot < 0 ? 0 : partials.chunks_of(row), at / dim, at % dim);
    if (in_unit - lane < width)  // a whole warp
        put_activations(out, r, column - lane, here ? mixed[0] : 0.0f);
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
    const int together = shape.head_dim % kGroup == 0 ? 1 : kPairedHeads;
    const int across = tiles_of(together * shape.head_dim, kMergeThreads);
    const bool is_one_row = qkv.rows == 1 && together == 1 &&
                            std::has_single_bit(unsigned(own_heads)) &&
                            own_heads <= kMostTogether && shape.heads / own_heads < kMostTickets;
    for (int first = 0; first < qkv.rows; first += step) {
        const int count = std::min(step, qkv.rows - first);
        const int most_rows = std::max((count <= kFewRows ? kOwn : pairs) / own_heads, 1);
        const int own_rows = std::min(int(std::bit_ceil(unsigned(count))), most_rows);
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
        const int deep = std::clamp(kAtOnce * split_.multiprocessors / (wide * high), 1,
                                    chunks + kChunksAlone * own_rows);
        const Grid grid{dim3(unsigned(wide), unsigned(high), unsigned(deep)), dim3(kChunkThreads),
                        *queue_, "attention"};
        if (is_one_row)
            return launch_beside(
                f16 ? row_kernel<uint16_t> : row_kernel<float>, grid, task,
                AttentionTail{tickets_, out, leave_peaks(wide * kMergeWarps, op.readers)});
        launch_beside(f16 ? chunk_kernel<uint16_t> : chunk_kernel<float>, grid, task);
        launch_beside(merge_kernel,
                      {dim3(unsigned(tiles_of(shape.heads, together) * across), unsigned(count)),
                       dim3(kMergeThreads), *queue_, "attention_merge"},
                      out.row_range(first, count), block, partials, together, across);
    }
}

}  // namespace aerie::cuda
