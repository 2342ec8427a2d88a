// Op ExpertMatmul, expert by expert: the rows of x that go to an expert are gathered, and the
// products go to their places.
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

namespace {

// Joins the tiles of one expert, which follow each other, from tile t on, so that the expert's
// weights are read once for all of them. Then t is the tile behind them.
ExpertTile next_expert(const Tensor& tiles, int& t) {
    ExpertTile places = *row<ExpertTile>(tiles, t++);
    for (; t < tiles.rows && places.count > 0; ++t) {
        const ExpertTile& next = *row<ExpertTile>(tiles, t);
        if (next.count == 0 || next.expert != places.expert ||
            places.count + next.count > kMaxColumns)
            break;
        places.count += next.count;
    }
    return places;
}

int padded(int columns) {
    return (columns + kPackedStep - 1) / kPackedStep * kPackedStep;
}

}  // namespace

// An expert with its columns in scratch, from `column` on, packed for weights of one type.
struct PackedExpert {
    ExpertTile places;
    int column;
    DType packed_for = DType::F32;  // not packed yet
};

// Experts that are multiplied together, so that threads meet once for all of them.
struct ExpertGroup {
    static constexpr int kMost = kMaxColumns / kPackedStep;
    std::array<PackedExpert, kMost> experts;
    int count = 0, columns = 0;

    bool has_room(int more, int most) const { return columns + padded(more) <= most; }
    void add(const ExpertTile& places) {
        experts[size_t(count++)] = {places, columns};
        columns += padded(places.count);
    }
};

namespace {

// The row of x for a place.
int row_of_place(const ExpertMatmul& op, int place) {
    return op.x.rows == op.routing.rows() ? place / op.routing.chosen() : place;
}
int stacks(const ExpertMatmul& op) {
    return op.out.cols / op.weight.matrix_rows;
}
int experts(const ExpertMatmul& op) {
    return op.weight.rows / op.out.cols;
}
// The output of a stack, from row `row_in` of its experts' matrices on.
MatmulOutput output_of(const ExpertMatmul& op, const ExpertTile& places, int stack, int row_in) {
    return {.bias = nullptr,
            .out = row_f32(op.out, 0) + stack * op.weight.matrix_rows + row_in,
            .out_stride = size_t(op.out.row_stride),
            .accumulate = false,
            .places = row<int32_t>(op.routing.order, 0) + places.first};
}

}  // namespace

template <>
void CpuBackend::execute(const ExpertMatmul& op) {
    FloatEnvironment environment;
    assert(op.x.cols <= reserved().widest && op.routing.places() <= reserved().places);
    const CpuWeight& weight = static_cast<const CpuWeight&>(op.weight);
    const auto is_quantised_part = [](const CpuSegment& part) {
        return is_quantised(part.dtype());
    };
    const bool together =
        op.x.dtype == DType::I8G32 &&
        std::all_of(weight.parts().begin(), weight.parts().end(), is_quantised_part);
    const Tensor& tiles = op.routing.tiles;
    ExpertGroup group;
    for (int t = 0; t < tiles.rows;) {
        const ExpertTile places = next_expert(tiles, t);
        if (places.count == 0) break;
        if (!together) {
            multiply_expert(op, places);
            continue;
        }
        if (!group.has_room(places.count, packed_columns(reserved()))) {
            multiply_experts(op, group);
            group = {};
        }
        group.add(places);
    }
    if (group.count > 0) multiply_experts(op, group);
}

// Gathers the rows of x that go to an expert, into scratch from row `column` on.
Tensor CpuBackend::gather(const ExpertMatmul& op, const ExpertTile& places, int column) {
    const int32_t* order = row<int32_t>(op.routing.order, 0) + places.first;
    const size_t bytes = size_bytes(op.x.dtype, size_t(op.x.cols));
    const Tensor x = dense_prefix(gathered_, op.x.dtype, column + places.count, op.x.cols)
                         .row_range(column, places.count);
    for (int i = 0; i < places.count; ++i)
        std::memcpy(row<std::byte>(x, i), row<std::byte>(op.x, row_of_place(op, order[i])), bytes);
    return x;
}

void CpuBackend::multiply_expert(const ExpertMatmul& op, const ExpertTile& places) {
    const CpuWeight& weight = static_cast<const CpuWeight&>(op.weight);
    Columns columns = {gather(op, places, 0), {}};
    for (int stack = 0; stack < stacks(op); ++stack)
        multiply(columns, weight.block(stack * experts(op) + places.expert),
                 output_of(op, places, stack, 0));
}

void CpuBackend::multiply_experts(const ExpertMatmul& op, ExpertGroup& group) {
    const CpuWeight& weight = static_cast<const CpuWeight&>(op.weight);
    const int cols = op.x.cols, each = op.weight.matrix_rows;
    const int ranges = (each + kStripsTogether * kStripRows - 1) / (kStripsTogether * kStripRows);
    const auto packed = [&](const PackedExpert& expert) {
        return packed_ + size_t(expert.column) * size_t(cols / kGroup) * kPackedGroupBytes;
    };
    for (int stack = 0; stack < stacks(op); ++stack) {
        const auto matrix = [&](const PackedExpert& expert) {
            return weight.block(stack * experts(op) + expert.places.expert);
        };
        const double columns_each = double(group.columns) / group.count;
        pool_.run(group.count, columns_each * cols, [&](int first, int last, int) {
            for (int i = first; i < last; ++i) {
                PackedExpert& expert = group.experts[size_t(i)];
                const DType type = matrix(expert).dtype;
                if (expert.packed_for == type) continue;
                const Tensor x = gather(op, expert.places, expert.column);
                kernels_.pack_columns({.x = row<std::byte>(x, 0),
                                       .x_stride = size_bytes(x.dtype, size_t(x.row_stride)),
                                       .columns = x.rows,
                                       .inner = cols,
                                       .type = type,
                                       .packed = packed(expert)},
                                      0, x.rows);
                expert.packed_for = type;
            }
        });
        const double work = columns_each * cols * kStripsTogether * kStripRows;
        pool_.run(group.count * ranges, work, [&](int first, int last, int) {
            for (int i = first, next; i < last; i = next) {
                const PackedExpert& expert = group.experts[size_t(i / ranges)];
                next = std::min(last, (i / ranges + 1) * ranges);
                const int strip = i % ranges * kStripsTogether, from = strip * kStripRows;
                const int rows = std::min(each, from + (next - i) * kStripsTogether * kStripRows);
                const CpuMatrix expert_weight = matrix(expert);
                kernels_.matmul_quant({.packed = packed(expert),
                                       .columns = expert.places.count,
                                       .weight = expert_weight.strip(strip),
                                       .type = expert_weight.dtype,
                                       .rows = rows - from,
                                       .inner = cols,
                                       .output = output_of(op, expert.places, stack, from)});
            }
        });
    }
}

}  // namespace aerie::cpu
