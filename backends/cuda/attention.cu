// Attention. The history is cut into chunks of 64 logical positions. One kernel takes each chunk by
// itself: its maximum, its sum and its mix of values; a second one merges a row's chunks in order.
// Slots only say where to load from. A row's chunks are counted from the first that it sees.
#include <algorithm>
#include <cmath>

#include "cuda/backend.h"
#include "cuda/device/cache.cuh"
#include "cuda/device/packed.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kChunk = kPageSize;
constexpr int kThreads = 128;
constexpr int kHeads = 4;      // query heads that share loads of the cache
constexpr int kMaxParts = 16;  // of 16 elements: head_dim is 256 at most

// What became of the chunks: [rows, chunks, heads * head_dim] mixes, then [rows, chunks, heads]
// maxima and as many sums.
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
        max = mix + size_t(rows) * size_t(chunks) * size_t(heads) * size_t(head_dim);
        sum = max + size_t(rows) * size_t(chunks) * size_t(heads);
    }
    __device__ size_t place(int r, int chunk, int head) const {
        return (size_t(r) * size_t(chunks) + size_t(chunk)) * size_t(heads) + size_t(head);
    }
    __device__ int first(const Row& row) const { return first_seen(row.position, window); }
};

struct AttentionTask {
    View<const float> qkv;
    View<const int32_t> rows;
    AttentionShape shape;
    CacheView cache;
    Partials partials;
    float scale;
};

template <class T>
__device__ float element(const T* from) {
    if constexpr (sizeof(T) == 2)
        return from_f16(*from);
    else
        return *from;
}

// What is seen of a chunk.
struct Seen {
    int begin, end;
    __device__ bool has(int i) const { return i >= begin && i < end; }
};

// What the threads of a block share.
struct ChunkSpace {
    SharedArray<int, kChunk> cache_rows;
    SharedArray<float, kHeads * kChunk> scores;
};

// Half a warp a key: lane l has elements l, l + 16, ... of head_dim.
template <class T, int parts>
__device__ void score_chunk(ChunkSpace& space, const AttentionTask& task, int kv_head, int head,
                            int heads, Seen seen) {
    const int lane = int(threadIdx.x) % kLanes, dim = task.shape.head_dim;
    for (int h = 0; h < heads; ++h) {
        const float* q = task.qkv[int(blockIdx.x)] + (head + h) * dim;
        float query[parts];
#pragma unroll
        for (int m = 0; m < parts; ++m) query[m] = m * kLanes < dim ? q[m * kLanes + lane] : 0.0f;
        for (int i = int(threadIdx.x) / kLanes; i < kChunk; i += kThreads / kLanes) {
            float sum = 0;
            if (seen.has(i)) {
                const T* key = task.cache.template k<const T>(size_t(int(space.cache_rows[i]))) +
                               kv_head * dim + lane;
#pragma unroll
                for (int m = 0; m < parts; ++m)
                    if (m * kLanes < dim) sum = sum + query[m] * element(key + m * kLanes);
            }
            sum = sum_of_lanes(sum);
            if (lane == 0)
                space.scores[h * kChunk + i] = (seen.has(i) ? sum : -infinity()) * task.scale;
        }
    }
}

// A warp a head, both its halves the same: scores become exp(score - maximum).
__device__ void soften_chunk(ChunkSpace& space, const AttentionTask& task, int head, int heads) {
    const int lane = int(threadIdx.x) % kLanes, h = int(threadIdx.x) / 32;
    if (h >= heads) return;
    float scores[kChunk / kLanes], largest = -infinity();
#pragma unroll
    for (int i = 0; i < kChunk / kLanes; ++i) {
        scores[i] = space.scores[h * kChunk + i * kLanes + lane];
        largest = larger(scores[i], largest);
    }
    for (int distance = kLanes / 2; distance > 0; distance /= 2)
        largest = larger(__shfl_xor_sync(kAllLanes, largest, distance), largest);
    float sum = 0;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < kChunk / kLanes; ++i) {
        const float e = exp_of(scores[i] - largest);
        if (int(threadIdx.x) % 32 < kLanes) space.scores[h * kChunk + i * kLanes + lane] = e;
        sum = sum + e;
    }
    sum = sum_of_lanes(sum);
    if (int(threadIdx.x) % 32 == 0) {
        const size_t place = task.partials.place(int(blockIdx.x), int(blockIdx.z), head + h);
        task.partials.max[place] = largest;
        task.partials.sum[place] = sum;
    }
}

// A thread an element: sum_i p_i v_i in the order of positions.
template <class T>
__device__ void mix_chunk(ChunkSpace& space, const AttentionTask& task, int kv_head, int head,
                          int heads, Seen seen) {
    const int dim = task.shape.head_dim;
    for (int d = int(threadIdx.x); d < dim; d += kThreads) {
        float mixed[kHeads] = {};
        for (int i = seen.begin; i < seen.end; ++i) {
            const float value =
                element(task.cache.template v<const T>(size_t(int(space.cache_rows[i]))) +
                        kv_head * dim + d);
#pragma unroll
            for (int h = 0; h < kHeads; ++h)
                if (h < heads) mixed[h] = mixed[h] + float(space.scores[h * kChunk + i]) * value;
        }
#pragma unroll
        for (int h = 0; h < kHeads; ++h)
            if (h < heads)
                task.partials.mix[task.partials.place(int(blockIdx.x), int(blockIdx.z), head + h) *
                                      size_t(dim) +
                                  size_t(d)] = mixed[h];
    }
}

// A block a row, kv head and chunk.
template <class T, int parts>
__global__ void chunk_kernel(AttentionTask task) {
    __shared__ ChunkSpace space;
    const int r = int(blockIdx.x), kv_head = int(blockIdx.y);
    const Row& row = *reinterpret_cast<const Row*>(task.rows[r]);
    const int begin = task.partials.first(row);
    const int first = (begin / kChunk + int(blockIdx.z)) * kChunk;
    if (row.slot < 0 || row.position < first) return;
    const Seen seen{max(begin - first, 0), min(kChunk, row.position + 1 - first)};
    const int i = int(threadIdx.x);
    if (seen.has(i)) {
        const int position = first + i;
        const int slot = position < row.prefix     ? position
                         : position < row.position ? row.path[position - row.prefix]
                                                   : row.slot;
        space.cache_rows[i] = int(task.cache.row(row.sequence, slot));
    }
    __syncthreads();
    const int group = task.shape.heads / task.shape.kv_heads;
    for (int g = 0; g < group; g += kHeads) {
        const int head = kv_head * group + g, heads = min(kHeads, group - g);
        score_chunk<T, parts>(space, task, kv_head, head, heads, seen);
        __syncthreads();
        soften_chunk(space, task, head, heads);
        __syncthreads();
        mix_chunk<T>(space, task, kv_head, head, heads, seen);
        __syncthreads();
    }
}

// A thread a column of the output, over all chunks of its head.
__global__ void merge_kernel(ActivationView out, View<const int32_t> rows, Partials partials) {
    const int r = int(blockIdx.y), column = int(blockIdx.x * blockDim.x + threadIdx.x);
    const int first = column - int(threadIdx.x) % kGroup;
    if (first >= out.cols) return;  // a whole warp
    const Row& row = *reinterpret_cast<const Row*>(rows[r]);
    float mixed = 0, max = -infinity(), sum = 0;
    if (row.slot >= 0 && column < out.cols) {
        const int head = column / partials.head_dim, d = column % partials.head_dim;
        const int chunks = row.position / kChunk - partials.first(row) / kChunk + 1;
        for (int chunk = 0; chunk < chunks; ++chunk) {
            const size_t place = partials.place(r, chunk, head);
            const float chunk_max = partials.max[place];
            const float new_max = larger(chunk_max, max);
            const float keep = exp_of(max - new_max);
            const float weight = exp_of(chunk_max - new_max);
            sum = sum * keep + partials.sum[place] * weight;
            mixed =
                mixed * keep + partials.mix[place * size_t(partials.head_dim) + size_t(d)] * weight;
            max = new_max;
        }
        mixed = mixed * reciprocal(sum);
    }
    put_activations(out, r, first, mixed);
}

template <class T>
auto chunk_kernel_of(int head_dim) {
    return head_dim <= 64    ? chunk_kernel<T, 4>
           : head_dim <= 128 ? chunk_kernel<T, 8>
                             : chunk_kernel<T, kMaxParts>;
}

}  // namespace

template <>
void CudaBackend::execute(const Attention& op) {
    const Tensor &out = op.out, &qkv = op.qkv;
    const AttentionShape& shape = op.shape;
    const KvLayer& kv = op.kv;
    if (shape.head_dim > kMaxParts * kLanes)
        return queue_->refuse("attention", "heads of more than 256 elements");
    const int pages = kv.page_table.cols, columns = shape.heads * shape.head_dim;
    const int chunks = op.window > 0 ? std::min(pages, chunks_of_window(op.window)) : pages;
    const size_t row_floats = size_t(chunks) * size_t(columns + 2 * shape.heads);
    const int step = int(std::min(partial_floats_ / row_floats, size_t(qkv.rows)));
    if (step == 0) return queue_->refuse("attention", "a context beyond what was reserved");
    const auto kernel = kv.k.dtype == DType::F16 ? chunk_kernel_of<uint16_t>(shape.head_dim)
                                                 : chunk_kernel_of<float>(shape.head_dim);
    for (int first = 0; first < qkv.rows; first += step) {
        const int count = std::min(step, qkv.rows - first);
        const Partials partials(partials_, count, chunks, shape, op.window);
        const Tensor block = op.rows.range(first, count).block;
        const AttentionTask task{qkv.row_range(first, count),
                                 block,
                                 shape,
                                 CacheView(kv),
                                 partials,
                                 float(1.0 / std::sqrt(double(shape.head_dim)))};
        launch(kernel,
               {dim3(unsigned(count), unsigned(shape.kv_heads), unsigned(chunks)), dim3(kThreads),
                *queue_, "attention"},
               task);
        launch(merge_kernel,
               {dim3(unsigned(tiles_of(columns, kThreads)), unsigned(count)), dim3(kThreads),
                *queue_, "attention_merge"},
               out.row_range(first, count), block, partials);
    }
}

}  // namespace aerie::cuda
