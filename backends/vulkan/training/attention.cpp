// Attention of training-time test: depth 0 in tiles (attended_tiles.glsl), then the one key that a
// row has of each later depth.
#include <cmath>

#include "backend/training_checks.h"
#include "vulkan/glue.h"
#include "vulkan/training/vulkan_training.h"

namespace aerie::vulkan {

namespace {

// The first row of each row's sequence, and the row after its last one.
std::vector<int> sequence_of_rows(const TrainedAttention& shape) {
    std::vector<int> found;
    for (size_t s = 1; s < shape.sequences.size(); ++s)
        for (int row = shape.sequences[s - 1]; row < shape.sequences[s]; ++row) {
            found.push_back(shape.sequences[s - 1]);
            found.push_back(shape.sequences[s]);
        }
    return found;
}

// Multiply-adds of one product of all queries and the keys that they see.
double work_of(const TrainedAttention& shape) {
    double pairs = 0;
    for (size_t s = 1; s < shape.sequences.size(); ++s) {
        const double length = shape.sequences[s] - shape.sequences[s - 1];
        pairs += length * (length + kAttendedSide) / 2;
    }
    return pairs * shape.heads * shape.head_dim;
}

Grid tiles(int rows, int heads, int head_dim) {
    return {groups(rows, kAttendedSide), uint32_t(heads), groups(head_dim, kAttendedColumns)};
}

uint32_t group_of(const TrainedAttention& shape) {
    return uint32_t(shape.heads / shape.kv_heads);
}

float scale_of(const TrainedAttention& shape) {
    return float(1 / std::sqrt(double(shape.head_dim)));
}

}  // namespace

void VulkanTraining::attend(const Matrix& out, const Matrix& lse, const Matrix& q,
                            std::span<const Matrix> keys, std::span<const Matrix> values,
                            const TrainedAttention& shape) {
    check_attend(out, lse, q, keys, values, shape);
    if (q.rows == 0) return;
    const auto params = [&](size_t depth) {
        return AttendParams{
            .rows = uint32_t(q.rows),
            .group = group_of(shape),
            .head_dim = uint32_t(shape.head_dim),
            .out_stride = stride_of(out),
            .lse_stride = stride_of(lse),
            .q_stride = stride_of(q),
            .keys_stride = stride_of(keys[depth]),
            .values_stride = stride_of(values[depth]),
            .scale = scale_of(shape),
        };
    };
    dispatch({"training_attend"}, params(0),
             {writes(out), writes(lse), reads(q), reads(keys[0]), reads(values[0]),
              reads(upload(sequence_of_rows(shape)))},
             tiles(q.rows, shape.heads, shape.head_dim), 2 * work_of(shape));
    for (size_t depth = 1; depth < keys.size(); ++depth)
        dispatch({"training_attend_own"}, params(depth),
                 {writes(out), writes(lse), reads(q), reads(keys[depth]), reads(values[depth])},
                 {uint32_t(shape.heads), row_groups(q.rows)}, 4 * double(q.size()));
}

void VulkanTraining::attend_back(const Matrix& dq, std::span<const Matrix> dkeys,
                                 std::span<const Matrix> dvalues, const Matrix& dout,
                                 const Matrix& out, const Matrix& lse, const Matrix& q,
                                 std::span<const Matrix> keys, std::span<const Matrix> values,
                                 const TrainedAttention& shape) {
    check_attend_back(dq, dkeys, dvalues, dout, out, lse, q, keys, values, shape);
    if (q.rows == 0) return;
    const Tensor along = results(q.rows, shape.heads);
    const HeadDotsParams dots = {uint32_t(q.rows), uint32_t(shape.head_dim), uint32_t(shape.heads),
                                 stride_of(dout), stride_of(out)};
    dispatch({"training_head_dots"}, dots, {writes(along), reads(dout), reads(out)},
             {uint32_t(shape.heads), row_groups(q.rows)}, double(q.size()));
    const auto params = [&](size_t depth) {
        return AttendBackParams{
            .rows = uint32_t(q.rows),
            .group = group_of(shape),
            .head_dim = uint32_t(shape.head_dim),
            .dq_stride = stride_of(dq),
            .dkeys_stride = stride_of(dkeys[depth]),
            .dvalues_stride = stride_of(dvalues[depth]),
            .dout_stride = stride_of(dout),
            .lse_stride = stride_of(lse),
            .along_stride = uint32_t(shape.heads),
            .q_stride = stride_of(q),
            .keys_stride = stride_of(keys[depth]),
            .values_stride = stride_of(values[depth]),
            .scale = scale_of(shape),
        };
    };
    const Tensor sequences = upload(sequence_of_rows(shape));
    dispatch({"training_attend_back_queries"}, params(0),
             {writes(dq), reads(dout), reads(q), reads(keys[0]), reads(values[0]), reads(lse),
              reads(along), reads(sequences)},
             tiles(q.rows, shape.heads, shape.head_dim), 3 * work_of(shape));
    dispatch({"training_attend_back_keys"}, params(0),
             {writes(dkeys[0]), writes(dvalues[0]), reads(dout), reads(q), reads(keys[0]),
              reads(values[0]), reads(lse), reads(along), reads(sequences)},
             tiles(q.rows, shape.kv_heads, shape.head_dim), 4 * work_of(shape));
    for (size_t depth = 1; depth < keys.size(); ++depth)
        dispatch({"training_attend_back_own"}, params(depth),
                 {writes(dq), writes(dkeys[depth]), writes(dvalues[depth]), reads(dout), reads(q),
                  reads(keys[depth]), reads(values[depth]), reads(lse), reads(along)},
                 {uint32_t(shape.kv_heads), row_groups(q.rows)}, 6 * double(q.size()));
}

}  // namespace aerie::vulkan
