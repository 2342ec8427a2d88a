// Products of rows with the experts that they go to. A place is a row and one of its experts
// (Routing). Blocks along y are tiles of places of one expert; those of tiles that do not exist end
// at once.
#include <cassert>

#include "cuda/backend.h"
#include "cuda/device/float_product.cuh"
#include "cuda/device/quant_product.cuh"
#include "cuda/launch.h"
#include "cuda/split.h"
#include "cuda/weight.h"

namespace aerie::cuda {

// All tiles, and the weights of their experts.
struct ExpertTask {
    const ExpertTile* tiles;
    const int32_t* order;
    const std::byte* weights;  // the weight of expert 0
    size_t weight_bytes;       // bytes of each expert's weight
    int each;                  // places of a row of x
};

namespace {

// The places of a tile that this block has.
struct TilePlaces {
    const std::byte* weight;
    const int32_t* places;
    int count, each;

    // The places of a tile from `first` on; none if count is 0 or less.
    __device__ TilePlaces(const ExpertTask& task, int tile, int first) {
        const ExpertTile& expert_tile = task.tiles[tile];
        weight = task.weights + size_t(expert_tile.expert) * task.weight_bytes;
        places = task.order + expert_tile.first + first;
        count = expert_tile.count - first;
        each = task.each;
    }
    // The row of x of a place; beyond the last place, that of the last.
    __device__ int row_of(int token) const { return places[min(token, count - 1)] / each; }
    __device__ MatmulOutput output(MatmulOutput all) const {
        all.out.rows = count;
        all.places = places;
        return all;
    }
};

template <class Format, int tiles>
__global__ void __launch_bounds__(kBlockThreads, 2)
    expert_float_kernel(FloatTask task, ExpertTask experts) {
    const TilePlaces tile(experts, int(blockIdx.y), 0);
    if (tile.count <= 0) return;
    task.weight = reinterpret_cast<const uint4*>(tile.weight);
    task.output = tile.output(task.output);
    multiply_packed<Format, tiles, kBlockTiles, true>(
        task, [&](int token) { return tile.row_of(token); });
}

template <class Format, int tiles>
__global__ void __launch_bounds__(kBlockThreads, (kBlocks<Format, tiles>))
    expert_quant_kernel(QuantTask task, MatmulOutput output, ExpertTask experts) {
    const TilePlaces tile(experts, int(blockIdx.y), 0);
    if (tile.count <= 0) return;
    task.weight = reinterpret_cast<const uint4*>(tile.weight);
    task.split = {};  // a constant, so that the compiler drops the reduction across blocks
    float total[tiles][4] = {};
    multiply_rows<Format>(total, task, [&](int token) { return tile.row_of(token); });
    const MatmulOutput to = tile.output(output);
    const int row_tile = int(blockIdx.x) * kBlockTiles + int(threadIdx.x) / 32;
    to.put_tiles<tiles, true>(total, 0, row_tile);
}

// A tile has `parts` blocks along y, of kF32Tokens places each.
__global__ void __launch_bounds__(32)
    expert_f32_kernel(MatmulOutput output, View<const float> x, ExpertTask experts, int parts) {
    const int y = int(blockIdx.y);
    const TilePlaces tile(experts, y / parts, y % parts * kF32Tokens);
    if (tile.count <= 0) return;
    multiply_f32(tile.output(output), x, reinterpret_cast<const float*>(tile.weight), 0,
                 [&](int token) { return tile.row_of(token); });
}

template <class Format>
auto float_kernel_of(int tiles) {
    return with_token_tiles(tiles, [](auto count) {
        return BlockKernel{expert_float_kernel<Format, count.value>,
                           FloatRing<Format, count.value>::kBytes};
    });
}
template <class Format>
auto quant_kernel_of(int tiles) {
    return with_token_tiles(tiles, [](auto count) {
        return BlockKernel{expert_quant_kernel<Format, count.value>,
                           Ring<QuantStep<Format, count.value>>::kBytes};
    });
}

}  // namespace

// The products with one stack of experts.
struct ExpertStack {
    ExpertTask task;
    MatmulOutput output;
    int rows;   // output rows of an expert
    int tiles;  // tiles of places
    int most;   // places of a tile, at most
    Queue& queue;

    // A grid of strips of `strip` rows, times `along` blocks of places.
    dim3 blocks(int strip, int along) const {
        return dim3(unsigned(tiles_of(rows, strip)), unsigned(along));
    }
};

namespace {

template <class Format>
void pack(uint2* columns, float* scales, const Tensor& x, Queue& queue) {
    launch(pack_columns_kernel<Format>,
           {dim3(unsigned(x.rows)), dim3(kPackThreads), queue, "pack_columns"},
           PackedColumns{columns, scales}, x);
}

void launch_f32(const ExpertStack& stack, const Tensor& x) {
    const int parts = tiles_of(stack.most, kF32Tokens);
    launch(
        expert_f32_kernel,
        {stack.blocks(kF32Rows, stack.tiles * parts), dim3(32), stack.queue, "expert_matmul_f32"},
        stack.output, x, stack.task, parts);
}

template <class Format>
void launch_packed(const ExpertStack& stack, const uint2* packed, const float* scales, int cols,
                   const SplitPlan& plan, const char* name) {
    const auto [kernel, shared_bytes] = float_kernel_of<Format>(token_tiles(stack.most));
    launch(kernel,
           {stack.blocks(kBlockRows, stack.tiles), dim3(kBlockThreads), stack.queue, name,
            shared_bytes},
           FloatTask{nullptr, packed, scales, float_tiles(cols), tiles_of(stack.rows, kTileRows),
                     stack.output, plan.split_floats(stack.rows, cols)},
           stack.task);
}

template <class Format>
void launch_quantised(const ExpertStack& stack, const Tensor& x) {
    const auto [kernel, shared_bytes] = quant_kernel_of<Format>(token_tiles(stack.most));
    const QuantTask task{
        nullptr,         row<const std::byte>(x, 0),      size_bytes(x.dtype, size_t(x.row_stride)),
        x.cols / kGroup, tiles_of(stack.rows, kTileRows), QuantSplitK{}};
    launch(kernel,
           {stack.blocks(kBlockRows, stack.tiles), dim3(kBlockThreads), stack.queue,
            Format::kExperts, shared_bytes},
           task, stack.output, stack.task);
}

}  // namespace

template <>
void CudaBackend::enqueue(const ExpertMatmul& op) {
    if (op.x.cols > limits_.widest || op.routing.places() > limits_.places)
        return queue_->refuse("expert_matmul", "larger activations than were reserved");
    const CudaWeight& weight = static_cast<const CudaWeight&>(op.weight);
    const Routing& routing = op.routing;
    const int experts = weight.rows / op.out.cols, each = weight.matrix_rows;
    MatmulColumns columns{op.x, {}, {}};
    for (int i = 0; i < op.out.cols / each; ++i) {
        const ExpertBlock place = find_block(weight, i * experts);
        const CudaSegment& part = weight.parts()[place.segment];
        const ExpertStack stack{
            .task = {row<const ExpertTile>(routing.tiles, 0), row<const int32_t>(routing.order, 0),
                     part.data + size_t(place.index) * part.matrix_bytes, part.matrix_bytes,
                     op.x.rows == routing.rows() ? routing.chosen() : 1},
            .output = {.out = op.out.col_range(i * each, each),
                       .order = part.order,
                       .bias = nullptr,
                       .accumulate = false,
                       .gated = false},
            .rows = each,
            .tiles = routing.tiles.rows,
            .most = std::min(routing.rows(), kExpertTileRows),
            .queue = *queue_};
        multiply_experts(stack, columns, part);
    }
}

// The columns are all rows of x; packed columns have scratch of their own.
void CudaBackend::multiply_experts(const ExpertStack& stack, MatmulColumns& columns,
                                   const CudaSegment& part) {
    const DType type = part.place.dtype;
    const Tensor& x = columns.x;
    if (type == DType::F32) return launch_f32(stack, x);
    if (is_quantised(type)) {
        if (x.dtype == DType::F32 && !columns.quantised) {
            columns.quantised = dense_prefix(quantised_, x.rows, x.cols);
            execute(Copy{columns.quantised, x});
        }
        const Tensor& steps = columns.quantised ? columns.quantised : x;
        return with_format(type,
                           [&](auto format) { launch_quantised<decltype(format)>(stack, steps); });
    }
    uint2* packed = reinterpret_cast<uint2*>(place_columns_);
    const bool f16 = type == DType::F16;
    const Packing wanted = f16 ? Packing::f16 : Packing::bf16;
    if (columns.deferred.packed != wanted)
        f16 ? pack<F16>(packed, place_scales_, x, *queue_)
            : pack<BF16>(packed, place_scales_, x, *queue_);
    columns.deferred.packed = wanted;
    f16 ? launch_packed<F16>(stack, packed, place_scales_, x.cols, split_, "expert_matmul_f16")
        : launch_packed<BF16>(stack, packed, place_scales_, x.cols, split_, "expert_matmul_bf16");
}

}  // namespace aerie::cuda
