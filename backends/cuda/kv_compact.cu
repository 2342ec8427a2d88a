// Moves accepted rows down in the KV cache, in all layers at once.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kThreads = 128;
// Layers of a launch: their addresses are kernel parameters, which may take 4 KiB.
constexpr int kLayers = 128;

// Keys and values of some layers, as words of 4 bytes.
struct Caches {
    uint32_t* parts[2 * kLayers];  // keys of layer 0, values of layer 0, keys of layer 1, ...
    size_t strides[2];             // words
    int width;                     // words
};

// A thread moves one word of every row, move by move, so that moves may overlap.
__global__ void compact_kernel(Caches caches, View<const int32_t> pages,
                               View<const int32_t> moves) {
    const int i = int(blockIdx.x * blockDim.x + threadIdx.x), part = int(blockIdx.y);
    if (i >= caches.width) return;
    const auto place = [&](int sequence, int slot) -> uint32_t& {
        const size_t row =
            size_t(pages[sequence][slot / kPageSize]) * kPageSize + size_t(slot % kPageSize);
        return caches.parts[part][row * caches.strides[part % 2] + size_t(i)];
    };
    for (int n = 0; n < moves.rows; ++n) {
        const KvMove& move = *reinterpret_cast<const KvMove*>(moves[n]);
        place(move.sequence, move.to) = place(move.sequence, move.from);
    }
}

size_t words(DType type, int columns) {
    return size_bytes(type, size_t(columns)) / sizeof(uint32_t);
}

}  // namespace

template <>
void CudaBackend::enqueue(const KvCompact& op) {
    for (size_t first = 0; first < op.layers.size(); first += kLayers) {
        const auto layers =
            op.layers.subspan(first, std::min(op.layers.size() - first, size_t(kLayers)));
        const Tensor &k = layers[0].k, &v = layers[0].v;
        Caches caches = {.parts = {},
                         .strides = {words(k.dtype, k.row_stride), words(v.dtype, v.row_stride)},
                         .width = int(words(k.dtype, k.cols))};
        for (size_t i = 0; i < layers.size(); ++i) {
            caches.parts[2 * i] = row<uint32_t>(layers[i].k, 0);
            caches.parts[2 * i + 1] = row<uint32_t>(layers[i].v, 0);
        }
        const dim3 blocks(unsigned(tiles_of(caches.width, kThreads)), unsigned(2 * layers.size()));
        launch(compact_kernel, {blocks, dim3(kThreads), *queue_, "kv_compact"}, caches,
               layers[0].page_table, op.moves);
    }
}

}  // namespace aerie::cuda
