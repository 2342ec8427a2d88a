// Products of rows with the experts that they go to: blocks along y are tiles of places of one
// expert, and those of tiles that are not there end at once.
#include <cassert>

#include "cuda/backend.h"
#include "cuda/device/float_product.cuh"
#include "cuda/device/quant_product.cuh"
#include "cuda/launch.h"
#include "cuda/weight.h"

namespace aerie::cuda {

// All tiles, and the weights of their experts.
struct ExpertTask {
    const ExpertTile* tiles;
    const int32_t* order;
    const std::byte* weights;  // of expert 0
    size_t weight_bytes;       // of each
    int each;                  // places of a row of x
};

namespace {

// The places of a tile that this block has.
struct TilePlaces {
    const std::byte* weight;
    const int32_t* places;
    int count, each;

    // From `first` on. None where there are no more.
    __device__ TilePlaces(const ExpertTask& task, int tile, int first) {
        const ExpertTile& its = task.tiles[tile];
        weight = task.weights + size_t(its.expert) * task.weight_bytes;
        places = task.order + its.first + first;
        count = its.count - first;
        each = task.each;
    }
    // Beyond the last one: the last one.
    __device__ int row_of(int token) const { return places[min(token, count - 1)] / each; }
    __device__ MatmulOutput output(MatmulOutput all) const {
        all.out.rows = count;
        all.places = places;
        return all;
    }
};

// Rows of x among packed ones.
struct PackedPlaces {
    const TilePlaces& tile;

    template <class Format>
    __device__ const uint2* columns(const FloatTask& task, int n) const {
        const int lane = int(threadIdx.x), row = tile.row_of(n * kTokenTile + lane / 4);
        return task.packed + column_place<Format>(row / kTokenTile, 0, task.k_tiles, 0) +
               row % kTokenTile * 4 + lane % 4;
    }
    __device__ float inverse_scale(const FloatTask& task, int n, int i) const {
        return task.inverse_scales[tile.row_of(n * kTokenTile + int(threadIdx.x) % 4 * 2 + i)];
    }
};

// Rows of I8G32 as they come. A lane reads one of each token tile; the scales of the two whose sums
// it has come from the lanes that read those.
template <int tiles>
struct QuantPlaces {
    const QuantTask& task;
    int rows[tiles];

    __device__ QuantPlaces(const QuantTask& task, const TilePlaces& tile) : task(task) {
#pragma unroll
        for (int n = 0; n < tiles; ++n)
            rows[n] = tile.row_of(n * kTokenTile + int(threadIdx.x) / 4);
    }
    template <bool with_sums>
    __device__ Columns columns(int n, int group) const {
        const int t = int(threadIdx.x) % 4;
        const unsigned* block = reinterpret_cast<const unsigned*>(
            task.x + size_t(rows[n]) * task.x_stride + size_t(group) * sizeof(BlockI8G32));
        const auto of_sums = [&](float value) {
            return make_float2(__shfl_sync(kAllLanes, value, t * 8),
                               __shfl_sync(kAllLanes, value, t * 8 + 4));
        };
        Columns columns = {
            make_uint2(__ldg(block + kStepWord + t), __ldg(block + kStepWord + 4 + t)),
            of_sums(__uint_as_float(__ldg(block))),
            {}};
        if constexpr (with_sums) columns.sums = of_sums(sum_of_halves(__ldg(block + kSumsWord)));
        return columns;
    }
};

template <class Format, int tiles>
__global__ void __launch_bounds__(32) expert_float_kernel(FloatTask task, ExpertTask experts) {
    const TilePlaces tile(experts, int(blockIdx.y), 0);
    if (tile.count <= 0) return;
    task.weight = reinterpret_cast<const uint4*>(tile.weight);
    task.output = tile.output(task.output);
    multiply_floats<Format, tiles>(task, PackedPlaces{tile});
}

template <class Format, int tiles>
__global__ void __launch_bounds__(32)
    expert_quant_kernel(QuantTask task, MatmulOutput output, ExpertTask experts) {
    __shared__ QuantRing<Format, kGroupsAhead> ring;
    const TilePlaces tile(experts, int(blockIdx.y), 0);
    if (tile.count <= 0) return;
    task.weight = reinterpret_cast<const uint4*>(tile.weight);
    float total[tiles][4] = {};
    multiply_rows<Format>(total, ring, task, int(blockIdx.x), QuantPlaces<tiles>(task, tile));
    const MatmulOutput to = tile.output(output);
#pragma unroll
    for (int n = 0; n < tiles; ++n) to.put_tile(n, int(blockIdx.x), total[n]);
}

// `parts` blocks along y have a tile, kF32Tokens places each.
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
    return with_token_tiles(tiles,
                            [](auto count) { return expert_float_kernel<Format, count.value>; });
}
template <class Format>
auto quant_kernel_of(int tiles) {
    return with_token_tiles(tiles,
                            [](auto count) { return expert_quant_kernel<Format, count.value>; });
}

}  // namespace

// One stack of experts' products.
struct ExpertStack {
    ExpertTask task;
    MatmulOutput output;
    int rows;   // of an expert
    int tiles;  // of places
    int most;   // places of a tile
    Queue& queue;

    // Strips of so many rows times tiles, each in so many parts.
    Grid grid(int strip, int parts, const char* name) const {
        return {dim3(unsigned(tiles_of(rows, strip)), unsigned(tiles * parts)), dim3(32), queue,
                name};
    }
};

namespace {

template <class Format>
void pack(uint2* columns, float* scales, const Tensor& x, Queue& queue) {
    const PlainRows rows{x};
    const unsigned tokens = unsigned(tiles_of(x.rows, kTokenTile) * kTokenTile);
    launch(pack_columns_kernel<Format, PlainRows>,
           {dim3(tokens), dim3(kPackThreads), queue, PlainRows::kName}, columns, scales, rows);
}

void launch_f32(const ExpertStack& stack, const Tensor& x) {
    const int parts = tiles_of(stack.most, kF32Tokens);
    launch(expert_f32_kernel, stack.grid(kF32Rows, parts, "expert_matmul_f32"), stack.output, x,
           stack.task, parts);
}

template <class Format>
void launch_packed(const ExpertStack& stack, const uint2* packed, const float* scales, int cols,
                   const char* name) {
    launch(float_kernel_of<Format>(token_tiles(stack.most)), stack.grid(kTileRows, 1, name),
           FloatTask{nullptr, packed, scales, float_tiles(cols), stack.output},
           stack.task);
}

template <class Format>
void launch_quantised(const ExpertStack& stack, const Tensor& x) {
    const QuantTask task{nullptr,
                         row<const std::byte>(x, 0),
                         size_bytes(x.dtype, size_t(x.row_stride)),
                         nullptr,
                         x.rows,
                         x.cols / kGroup};
    launch(quant_kernel_of<Format>(token_tiles(stack.most)),
           stack.grid(kTileRows, 1, Format::kExperts), task, stack.output, stack.task);
}

}  // namespace

template <>
void CudaBackend::execute(const ExpertMatmul& op) {
    if (op.x.cols > limits_.widest || op.routing.places() > limits_.places)
        return queue_->refuse("expert_matmul", "larger activations than were reserved");
    const CudaWeight& weight = static_cast<const CudaWeight&>(op.weight);
    const Routing& routing = op.routing;
    const int experts = weight.rows / op.out.cols, each = weight.matrix_rows;
    MatmulColumns columns{op.x, {}, Packing::none};
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

// Columns are all rows of x; packed, they lie in scratch of their own.
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
    if (columns.packed != wanted)
        f16 ? pack<F16>(packed, place_scales_, x, *queue_)
            : pack<BF16>(packed, place_scales_, x, *queue_);
    columns.packed = wanted;
    f16 ? launch_packed<F16>(stack, packed, place_scales_, x.cols, "expert_matmul_f16")
        : launch_packed<BF16>(stack, packed, place_scales_, x.cols, "expert_matmul_bf16");
}

}  // namespace aerie::cuda
