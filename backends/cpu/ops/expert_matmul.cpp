// Expert by expert: its rows come together, and their products go where they belong.
#include <cassert>
#include <cstring>

#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

template <>
void CpuBackend::execute(const ExpertMatmul& op) {
    FloatEnvironment environment;
    const Tensor& tiles = op.routing.tiles;
    for (int t = 0; t < tiles.rows;) {
        ExpertTile places = *row<ExpertTile>(tiles, t++);
        if (places.count == 0) break;
        // The tiles of an expert follow each other; its weights are read once for all of them.
        for (; t < tiles.rows; ++t) {
            const ExpertTile& next = *row<ExpertTile>(tiles, t);
            if (next.count == 0 || next.expert != places.expert ||
                places.count + next.count > kMostColumns)
                break;
            places.count += next.count;
        }
        multiply_expert(op, places);
    }
}

void CpuBackend::multiply_expert(const ExpertMatmul& op, const ExpertTile& places) {
    const CpuWeight& weight = static_cast<const CpuWeight&>(op.weight);
    const int32_t* order = row<int32_t>(op.routing.order, 0) + places.first;
    const int each = op.x.rows == op.routing.rows() ? op.routing.chosen() : 1;  // places of a row
    assert(op.x.cols <= reserved().widest && op.routing.places() <= reserved().places);
    Columns columns = {dense_prefix(gathered_, op.x.dtype, places.count, op.x.cols), {}};
    const size_t bytes = size_bytes(op.x.dtype, size_t(op.x.cols));
    for (int i = 0; i < places.count; ++i)
        std::memcpy(row<std::byte>(columns.x, i), row<std::byte>(op.x, order[i] / each), bytes);
    const int experts = weight.rows / op.out.cols, stacks = op.out.cols / weight.matrix_rows;
    for (int stack = 0; stack < stacks; ++stack)
        multiply(columns, weight.block(stack * experts + places.expert),
                 {.bias = nullptr,
                  .out = row_f32(op.out, 0) + stack * weight.matrix_rows,
                  .out_stride = size_t(op.out.row_stride),
                  .accumulate = false,
                  .places = order});
}

}  // namespace aerie::cpu
