// Op Attention: threads share blocks of rows times kv heads.
#include <algorithm>

#include "core/float_environment.h"
#include "cpu/backend.h"
#include "cpu/cache.h"

namespace aerie::cpu {

namespace {

// The task of `qkv`, some rows of the op's, for the query heads from `head` on that share a kv
// head, as many as a task takes. Histories and output are still missing.
AttentionTask attention_task(const Attention& op, const Tensor& qkv, int head) {
    const AttentionShape& shape = op.shape;
    const KvLayer& kv = op.kv;
    const int group = shape.heads / shape.kv_heads, kv_column = head / group * shape.head_dim;
    AttentionTask task = {};
    task.q = row_f32(qkv, 0) + head * shape.head_dim;
    task.q_stride = size_t(qkv.row_stride);
    task.rows = qkv.rows;
    task.group = std::min(kMaxQueries, group - head % group);
    task.head_dim = shape.head_dim;
    task.scale = op.scale;
    task.cache = {.k = element(kv.k, 0, kv_column),
                  .v = element(kv.v, 0, kv_column),
                  .k_stride = size_t(kv.k.row_stride),
                  .v_stride = size_t(kv.v.row_stride),
                  .type = float_type(kv.k.dtype)};
    return task;
}

}  // namespace

template <>
void CpuBackend::execute(const Attention& op) {
    FloatEnvironment environment;
    const Tensor &out = op.out, &qkv = op.qkv;
    const AttentionShape& shape = op.shape;
    constexpr int kQueries = 32,
                  kMaxBlock = 16;  // query heads and rows that share loads of the cache
    const int group = shape.heads / shape.kv_heads, columns = group * shape.head_dim;
    const bool quantised = out.dtype != DType::F32;
    // kv heads of a part. If its columns are quantised they must be whole groups.
    const int heads = quantised && columns % kGroup != 0 ? 2 : 1;
    int block = std::clamp(kQueries / group, 1, kMaxBlock);
    if (quantised) block = std::min(block, reserved().widest / (heads * columns));
    const int blocks = (qkv.rows + block - 1) / block, parts = shape.kv_heads / heads;
    double positions = 0;
    for (int r = 0; r < qkv.rows; ++r) {
        const int position = row_of(op.rows, r).position;
        positions += position + 1 - first_seen(position, op.window);
    }
    const double work = 2 * positions / blocks * heads * columns;
    pool_.run(blocks * parts, work, [&](int first, int last, int thread) {
        for (int i = first; i < last; ++i) {
            const int begin = i / parts * block, head = i % parts * heads;
            const int count = std::min(block, qkv.rows - begin);
            History histories[kMaxBlock];
            for (int r = 0; r < count; ++r)
                histories[r] = history(row_of(op.rows, begin + r), op.kv, op.window);
            const Tensor part =
                out.row_range(begin, count).col_range(head * columns, heads * columns);
            float* stage = scratch_[size_t(thread)].row;
            for (int h = 0; h < heads * group;) {
                AttentionTask task =
                    attention_task(op, qkv.row_range(begin, count), head * group + h);
                task.histories = histories;
                task.out = (quantised ? stage : row_f32(part, 0)) + h * shape.head_dim;
                task.out_stride = quantised ? size_t(part.cols) : size_t(out.row_stride);
                kernels_.attention(task);
                h += task.group;
            }
            for (int r = 0; quantised && r < count; ++r)
                kernels_.quantise(row<std::byte>(part, r), stage + r * part.cols, part.cols);
        }
    });
}

}  // namespace aerie::cpu
