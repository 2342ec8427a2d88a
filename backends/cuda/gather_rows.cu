// Rows moved: chosen ones to a new tensor, accepted ones down the cache.
#include "cuda/backend.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kThreads = 128;

__global__ void gather_kernel(View<float> out, View<const float> x, View<const int32_t> index) {
    const int r = int(blockIdx.y), i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < out.cols) out[r][i] = x[index[0][r]][i];
}

// The cache of keys or values as words of 4 bytes.
struct Cache {
    uint32_t* words;
    size_t stride;
    int width;

    explicit Cache(const Tensor& t)
        : words(row<uint32_t>(t, 0)),
          stride(size_bytes(t.dtype, size_t(t.row_stride)) / sizeof(uint32_t)),
          width(int(size_bytes(t.dtype, size_t(t.cols)) / sizeof(uint32_t))) {}
};

// A thread takes one word of every row, in order, so that rows may overlap.
__global__ void compact_kernel(Cache k, Cache v, const int32_t* pages, View<const int32_t> from,
                               int to_slot) {
    const Cache& cache = blockIdx.y == 0 ? k : v;
    const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= cache.width) return;
    const auto place = [&](int slot) -> uint32_t& {
        const size_t row = size_t(pages[slot / kPageSize]) * kPageSize + size_t(slot % kPageSize);
        return cache.words[row * cache.stride + size_t(i)];
    };
    for (int n = 0; n < from.cols; ++n) place(to_slot + n) = place(from[0][n]);
}

}  // namespace

void CudaBackend::do_gather_rows(Tensor out, Tensor x, Tensor index) {
    const dim3 blocks(unsigned(tiles_of(out.cols, kThreads)), unsigned(out.rows));
    launch(gather_kernel, {blocks, dim3(kThreads), *queue_, "gather_rows"}, out, x, index);
}

void CudaBackend::do_kv_compact(const KvLayer& kv, int sequence, Tensor from_slots, int to_slot) {
    const Cache k(kv.k), v(kv.v);
    launch(compact_kernel,
           {dim3(unsigned(tiles_of(k.width, kThreads)), 2), dim3(kThreads), *queue_, "kv_compact"},
           k, v, row<const int32_t>(kv.page_table, sequence), from_slots, to_slot);
}

}  // namespace aerie::cuda
