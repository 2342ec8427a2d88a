// Attention (op Attention): softmax(scale * Q K^T) V. As in Flash-Decoding, a row's
// history is cut into chunks of 64 logical positions. Each chunk by itself gives the maximum of its
// scores S, the sum of P = exp(S - maximum), and O = P V. Then a row's chunks are merged in
// ascending order, by the block that has all of them or by the last of several blocks to arrive.
// Slots only say where K and V are loaded from. A row's chunks are counted from the first that its
// window reaches.
//
// A block has some query heads of one kv head, and some rows. If a chunk lies in the same slots for
// all of its rows (committed positions, or a prompt), the block loads its K and V once; the other
// chunks, the last ones of a tree, it loads once per row. A pair of a row and a head goes through
// the same operations in the same order either way. The weights that consume the output decide
// which operations these are: those of chunk_tiles.cuh for float weights and a cache in f16, else
// those of chunk_lanes.cuh, in the order that every device has.
#include <algorithm>
#include <bit>

#include "cuda/backend.h"
#include "cuda/device/chunk_lanes.cuh"
#include "cuda/device/chunk_tiles.cuh"
#include "cuda/device/columns.cuh"
#include "cuda/device/last_block.cuh"
#include "cuda/device/merge.cuh"
#include "cuda/launch.h"
#include "cuda/split.h"

namespace aerie::cuda {

namespace {

constexpr int kAtOnce = 4;       // blocks of chunk_kernel that a multiprocessor has registers for
constexpr int kTilesAtOnce = 2;  // the same for chunk_tiles_kernel
constexpr int kPairedHeads = 2;  // heads of a merge_kernel block: together they are whole groups

// The epilogue of a block: how the chunks of its pairs are merged and stored.
struct AttentionTail {
    // Counters of blocks with the same pairs, the last of which merges; null: merge_kernel merges.
    unsigned* arrived;
    ActivationView out;
    // Receives the amax of each warp for the matmul that reads the only row; or null.
    float* amax;
};

// Stores O of the block's pairs [first, first + together), of which mixed(values, element) computes
// one element each. Returns the amax of this thread's elements.
template <int together, class Mixed>
__device__ unsigned put_pairs(ChunkSpace& chunk, const AttentionTask& task,
                              const AttentionTail& tail, int first, const Mixed& mixed) {
    const int pairs = task.own_heads * task.own_rows, dim = task.shape.head_dim;
    GroupPlace places[together];
#pragma unroll
    for (int p = 0; p < together; ++p) {
        const Pair pair = chunk.pairs[min(first + p, pairs - 1)];
        places[p] = {pair.row, pair.head * dim};
    }
    unsigned most = 0;
    for (int begin = 0; begin < dim; begin += kChunkThreads) {
        const int element = begin + int(threadIdx.x);
        float values[together];
        mixed(values, min(element, dim - 1));
        if (element >= dim) continue;  // the same for a whole warp
        const int group = element - element % kGroup;
        put_groups(tail.out, values, [&](int p) {
            return GroupPlace{places[p].row, places[p].first + group};
        });
#pragma unroll
        for (int p = 0; p < together; ++p) most = max(most, magnitude_of(values[p]));
    }
    return most;
}

template <int together>
__device__ unsigned merge_pairs(MergeSpace& space, ChunkSpace& chunk, const AttentionTask& task,
                                const AttentionTail& tail) {
    const int pairs = task.own_heads * task.own_rows;
    unsigned most = 0;
    for (int first = 0; first < pairs; first += together) {
        ChunksOfPair chunks[together];
#pragma unroll
        for (int p = 0; p < together; ++p) {
            const Pair pair = chunk.pairs[min(first + p, pairs - 1)];
            chunks[p] = {pair.place_of(pair.begin), pair.chunks()};
        }
        const auto merge = [&](float(&values)[together], int element) {
            Merge<together>(space, task.partials, chunks).run(values, element);
        };
        most = max(most, put_pairs<together>(chunk, task, tail, first, merge));
    }
    return most;
}

// Stores O of the pairs, if the block has merged their chunks itself.
__device__ inline unsigned put_sums(ChunkSpace& chunk, const AttentionTask& task,
                                    const AttentionTail& tail) {
    const int pairs = task.own_heads * task.own_rows, dim = task.shape.head_dim;
    unsigned most = 0;
    __syncthreads();
    for (int first = 0; first < pairs; first += kOwn) {
        const auto sums = [&](float(&values)[kOwn], int element) {
#pragma unroll
            for (int p = 0; p < kOwn; ++p) {
                const int at = min(first + p, pairs - 1);
                const Pair pair = chunk.pairs[at];
                const float o = chunk.o[ChunkSpace::o_place(at, element, dim)];
                const float sum = chunk.sums.template part<float>(at, 1);
                values[p] = pair.chunks() > 0 ? o * reciprocal(sum) : 0.0f;
            }
        };
        most = max(most, put_pairs<kOwn>(chunk, task, tail, first, sums));
    }
    return most;
}

// `adds`: the block had all chunks of its pairs and has merged them as they came.
__device__ inline void finish(ChunkSpace& space, const AttentionTask& task,
                              const AttentionTail& tail, bool adds) {
    __shared__ MergeSpace merge;
    if (!tail.arrived) return;
    unsigned most;
    if (adds)
        most = put_sums(space, task, tail);
    else if (!is_last_block(tail.arrived + blockIdx.y * gridDim.x + blockIdx.x, gridDim.z))
        return;
    else if (task.own_heads * task.own_rows == 1)
        most = merge_pairs<1>(merge, space, task, tail);
    else
        most = merge_pairs<kMaxTogether>(merge, space, task, tail);
    if (tail.amax)
        store_amax(tail.amax + int(blockIdx.x) * kChunkWarps + int(threadIdx.x) / 32, most);
}

template <class T, bool one_slab>
__global__ void __launch_bounds__(kChunkThreads, kAtOnce)
    chunk_kernel(AttentionTask task, AttentionTail tail) {
    __shared__ LanesSpace space;
    begin_beside();
    const bool adds = tail.arrived && gridDim.z == 1;
    ChunkLanes<T, one_slab>(space, task, adds).run();
    finish(space, task, tail, adds);
}
// Its output is always F32 (has_tiles): `quantised = false` lets the compiler drop the other case.
template <bool adds>
__global__ void __launch_bounds__(kChunkThreads, kTilesAtOnce)
    chunk_tiles_kernel(AttentionTask task, AttentionTail tail) {
    __shared__ TilesSpace space;
    begin_beside();
    ChunkTiles<adds>(space, task).run();
    tail.out.quantised = false;
    finish(space, task, tail, adds);
}

// Quantised weights give the same bits on every device, and so must the attention that they read.
bool has_tiles(const Attention& op) {
    return op.kv.k.dtype == DType::F16 && op.out.dtype == DType::F32 &&
           op.shape.head_dim <= kSlabElements<uint16_t>;
}
auto chunk_kernel_of(const Attention& op, bool adds) {
    if (has_tiles(op)) return adds ? chunk_tiles_kernel<true> : chunk_tiles_kernel<false>;
    const int dim = op.shape.head_dim;
    if (op.kv.k.dtype == DType::F16)
        return dim <= kSlabElements<uint16_t> ? chunk_kernel<uint16_t, true>
                                              : chunk_kernel<uint16_t, false>;
    return dim <= kSlabElements<float> ? chunk_kernel<float, true> : chunk_kernel<float, false>;
}

// Merges chunks where heads are not whole groups of 32. A thread has one column of two neighbouring
// heads; `across` blocks along x cover the columns of these two.
__global__ void __launch_bounds__(kMergeThreads, kAtOnce)
    merge_kernel(ActivationView out, View<const int32_t> rows, Partials partials, int across) {
    __shared__ MergeSpace space;
    begin_beside();
    const int r = int(blockIdx.y), dim = partials.head_dim;
    const int head = int(blockIdx.x) / across * kPairedHeads, lane = int(threadIdx.x) % kGroup;
    const int in_pair = int(blockIdx.x) % across * kMergeThreads + int(threadIdx.x);
    const int column = head * dim + in_pair, width = kPairedHeads * dim;
    const bool here = in_pair < width && column < out.cols;
    const Row& row = *reinterpret_cast<const Row*>(rows[r]);
    const int chunks = row.slot < 0 ? 0 : partials.chunks_of(row);
    ChunksOfPair merged[kPairedHeads];
#pragma unroll
    for (int p = 0; p < kPairedHeads; ++p)
        merged[p] = {unsigned(partials.place(r, min(head + p, partials.heads - 1), 0)), chunks};
    float mixed[kPairedHeads];
    Merge<kPairedHeads>(space, partials, merged).run(mixed, in_pair % dim);
    if (in_pair - lane < width)  // the same for a whole warp
        put_activations(out, r, column - lane, !here ? 0.0f : in_pair < dim ? mixed[0] : mixed[1]);
}

// Query heads of one kv head that a block takes: the largest divisor of `queries` up to `most`.
int heads_together(int queries, int most) {
    int heads = std::min(queries, most);
    while (queries % heads != 0) --heads;
    return heads;
}

}  // namespace

template <>
void CudaBackend::enqueue(const Attention& op) {
    const Tensor &out = op.out, &qkv = op.qkv;
    const AttentionShape& shape = op.shape;
    const KvLayer& kv = op.kv;
    if (shape.head_dim > kMaxHeadDim)
        return queue_->refuse("attention", "heads of more than 256 elements");
    const int pages = kv.page_table.cols, columns = shape.heads * shape.head_dim;
    const int chunks = op.window > 0 ? std::min(pages, chunks_of_window(op.window)) : pages;
    const bool f16 = kv.k.dtype == DType::F16;
    const int pairs =
        most_pairs(f16 ? kSlabElements<uint16_t> : kSlabElements<float>, shape.head_dim);
    const int own_heads = heads_together(shape.heads / shape.kv_heads, pairs);
    const int wide = shape.heads / own_heads;
    const int few_rows = std::max((has_tiles(op) ? kMaxPairs : kOwn) / own_heads, 1);
    const int slots = (has_tiles(op) ? kTilesAtOnce : kAtOnce) * split_.multiprocessors;
    const size_t row_floats = size_t(chunks) * size_t(columns + 2 * shape.heads);
    const int most = int(std::min(
        {partial_floats_ / row_floats, size_t(qkv.rows), size_t(kMaxTickets / wide * few_rows)}));
    if (most == 0) return queue_->refuse("attention", "a context beyond what was reserved");
    const int step = tiles_of(qkv.rows, tiles_of(qkv.rows, most));
    const bool merges = shape.head_dim % kGroup == 0;
    for (int first = 0; first < qkv.rows; first += step) {
        const int count = std::min(step, qkv.rows - first);
        // A block takes more rows, which load shared chunks once, while three quarters of the slots
        // on multiprocessors still get a block.
        int own_rows = std::min(int(std::bit_ceil(unsigned(count))), few_rows);
        while (own_rows * 2 * own_heads <= pairs &&
               wide * tiles_of(count, own_rows * 2) * 4 >= slots * 3)
            own_rows *= 2;
        const Partials partials(partials_, count, chunks, shape, op.window);
        const Tensor block = op.rows.range(first, count).block, to = out.row_range(first, count);
        const AttentionTask task{qkv.row_range(first, count),
                                 block,
                                 shape,
                                 CacheView(kv),
                                 partials,
                                 op.scale,
                                 own_heads,
                                 own_rows};
        const int high = tiles_of(count, own_rows);
        const int deep = std::clamp(slots / (wide * high), 1, chunks + kChunksAlone * own_rows);
        float* const amax =
            merges && qkv.rows == 1 ? defer_amax(wide * kChunkWarps, op.consumers) : nullptr;
        launch_beside(chunk_kernel_of(op, merges && deep == 1),
                      {dim3(unsigned(wide), unsigned(high), unsigned(deep)), dim3(kChunkThreads),
                       *queue_, "attention"},
                      task, AttentionTail{merges ? tickets_ : nullptr, to, amax});
        if (merges) continue;
        const int across = tiles_of(kPairedHeads * shape.head_dim, kMergeThreads);
        launch_beside(
            merge_kernel,
            {dim3(unsigned(tiles_of(shape.heads, kPairedHeads) * across), unsigned(count)),
             dim3(kMergeThreads), *queue_, "attention_merge"},
            to, block, partials, across);
    }
}

}  // namespace aerie::cuda
