// Rows of a table, looked up by each row's token.
#include "core/quant_blocks.h"
#include "cuda/backend.h"
#include "cuda/device/quant_format.cuh"
#include "cuda/device/quantise.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"
#include "cuda/weight.h"

namespace aerie::cuda {

namespace {

// Rows of the table that are stored in one type.
struct Table {
    const std::byte* data;
    DType type;
    int first_row, rows, cols;
    RowOrder order;
};

// An element of a quantised row, computed as BlockParts says.
__device__ float quant_element(const Table& table, int row, int col) {
    const QuantLayout layout = layout_of(table.type);
    const int k = col % kGroup, group = col / kGroup % layout.groups;
    const std::byte* block = table.data + quant_block_place(layout, row, col / kGroup, table.cols);
    const auto bits_at = [&](const BitsPlace& place, int count) {
        return int(block[place.byte]) >> place.shift & ((1 << count) - 1);
    };
    const auto f16_at = [&](int place) {
        return from_f16(*reinterpret_cast<const uint16_t*>(block + place));
    };
    int q = bits_at(low_bits_at(layout, row, group, k), layout.low_bits);
    if (layout.high_bits > 0)
        q |= bits_at(high_bits_at(layout, row, group, k), layout.high_bits) << layout.low_bits;
    const int sign = layout.has_least() ? 0 : 1 << (layout.bits() - 1);
    const float value = float((q ^ sign) - sign);

    const int at = scale_place(layout, row, group);
    const float scale = f16_at(at);
    const std::byte* of_row = block + row_scales_place(layout, row);
    switch (layout.scales) {
        case Scales::of_groups:
            return scale * value;
        case Scales::leasts_of_groups:
            return scale * value - f16_at(at + kMinBytes);
        case Scales::six_bits: {
            const SixBits whole(*reinterpret_cast<const uint4*>(of_row), group >= 4);
            return (scale * exact_byte<0>(whole.scales, group % 4)) * value -
                   f16_at(at + 2) * exact_byte<0>(whole.leasts, group % 4);
        }
        case Scales::of_halves:
            return (scale * float(int8_t(of_row[group * 2 + k / kScaled]))) * value;
    }
    return 0;
}

__device__ float element(const Table& table, int index, int col) {
    const int row = table.order.place(index);
    if (table.type == DType::F32)
        return reinterpret_cast<const float*>(table.data)[f32_place(row, col, table.cols)];
    if (is_float(table.type)) {
        const uint16_t bits =
            reinterpret_cast<const uint16_t*>(table.data)[float_place(row, col, table.cols)];
        return table.type == DType::F16 ? from_f16(bits) : __uint_as_float(unsigned(bits) << 16);
    }
    return quant_element(table, row, col);
}

// One block per row. A launch for each segment of the table writes the rows with tokens in that
// segment; the first one also sets padding rows to 0.
__global__ void embed_kernel(View<float> out, Table table, View<const int32_t> rows) {
    const int r = int(blockIdx.x);
    const Row& place = *reinterpret_cast<const Row*>(rows[r]);
    const bool padding = place.slot < 0;
    const int index = padding ? 0 : place.token - table.first_row;
    if (padding ? table.first_row != 0 : index < 0 || index >= table.rows) return;
    for (int col = int(threadIdx.x); col < out.cols; col += int(blockDim.x))
        out[r][col] = padding ? 0.0f : element(table, index, col);
}

// One warp per group of a row. Padding rows, and tokens that the table lacks, have an embedding of
// 0.
constexpr int kPairThreads = 128;
__global__ void embed_pair_kernel(ActivationView out, Table table, View<const int32_t> rows,
                                  View<const float> features, View<const int32_t> index) {
    const int col = int(blockIdx.x) * kPairThreads + int(threadIdx.x), r = int(blockIdx.y);
    const int first = col - col % kGroup, of_feature = min(col - table.cols, table.cols - 1);
    begin_beside();
    if (first >= out.cols) return;
    const Row& place = *reinterpret_cast<const Row*>(rows[r]);
    const int parent = index.data ? index[0][r] : r;
    float value = 0;
    if (of_feature >= 0)
        value = features[parent][of_feature];
    else if (place.slot >= 0 && place.token >= 0 && place.token < table.rows)
        value = element(table, place.token, col);
    put_activations(out, r, first, value);
}

Table table_of(const CudaSegment& part) {
    const WeightSegment& place = part.place;
    return {part.data, place.dtype, place.first_row, place.rows, part.cols, part.order};
}

}  // namespace

template <>
void CudaBackend::enqueue(const Embed& op) {
    for (const CudaSegment& part : static_cast<const CudaWeight&>(op.table).parts())
        launch(embed_kernel, {dim3(unsigned(op.out.rows)), dim3(128), *queue_, "embed"}, op.out,
               table_of(part), op.rows.block);
}

template <>
void CudaBackend::enqueue(const EmbedPair& op) {
    const std::span<const CudaSegment> parts = static_cast<const CudaWeight&>(op.table).parts();
    if (parts.size() > 1) return op.run_parts(*this, {});
    const dim3 blocks(unsigned(tiles_of(op.out.cols, kPairThreads)), unsigned(op.out.rows));
    launch_beside(embed_pair_kernel, {blocks, dim3(kPairThreads), *queue_, "embed_pair"}, op.out,
                  table_of(parts.front()), op.rows.block, op.features, op.index);
}

}  // namespace aerie::cuda
