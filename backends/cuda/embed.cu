// Rows of a table, looked up by each row's token.
#include "cuda/backend.h"
#include "cuda/device/packed.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/device/view.cuh"
#include "cuda/launch.h"
#include "cuda/weight.h"

namespace aerie::cuda {

namespace {

// Rows of one type.
struct Table {
    const std::byte* data;
    DType type;
    int first_row, rows, cols;
    RowOrder order;
};

__device__ float element(const Table& table, int index, int col) {
    const int row = table.order.place(index);
    if (table.type == DType::F32)
        return reinterpret_cast<const float*>(table.data)[f32_place(row, col, table.cols)];
    if (is_float(table.type)) {
        const uint16_t bits =
            reinterpret_cast<const uint16_t*>(table.data)[float_place(row, col, table.cols)];
        return table.type == DType::F16 ? from_f16(bits) : __uint_as_float(unsigned(bits) << 16);
    }
    const int group = col / kGroup, k = col % kGroup;
    const std::byte* block = table.data + quant_block_place(table.type, row, group, table.cols);
    const float scale =
        from_f16(*reinterpret_cast<const uint16_t*>(block + scale_place(table.type, row, group)));
    if (table.type == DType::Q8_0)
        return scale * float(reinterpret_cast<const int8_t*>(block)[q8_place(row, group, k)]);
    const int byte = int(reinterpret_cast<const uint8_t*>(block)[q4_place(row, group, k)]);
    const int nibble = row % kTileRows < 8 ? byte & 15 : byte >> 4;
    return scale * float((nibble ^ 8) - 8);  // the sign of four bits
}

// A block a row. It is written where its token is of this part of the table; rows that are only
// padding become 0, by the first part.
__global__ void embed_kernel(View<float> out, Table table, View<const int32_t> rows) {
    const int r = int(blockIdx.x);
    const Row& place = *reinterpret_cast<const Row*>(rows[r]);
    const bool padding = place.slot < 0;
    const int index = padding ? 0 : place.token - table.first_row;
    if (padding ? table.first_row != 0 : index < 0 || index >= table.rows) return;
    for (int col = int(threadIdx.x); col < out.cols; col += int(blockDim.x))
        out[r][col] = padding ? 0.0f : element(table, index, col);
}

}  // namespace

template <>
void CudaBackend::execute(const Embed& op) {
    for (const CudaSegment& part : static_cast<const CudaWeight&>(op.table).parts()) {
        const WeightSegment& place = part.place;
        launch(embed_kernel, {dim3(unsigned(op.out.rows)), dim3(128), *queue_, "embed"}, op.out,
               Table{part.data, place.dtype, place.first_row, place.rows, part.cols, part.order},
               op.rows.block);
    }
}

}  // namespace aerie::cuda
