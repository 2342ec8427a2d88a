// Op Attention: threads share blocks of rows times kv heads. Where these are few they share the
// chunks of each, too (split-K).
#include <algorithm>
#include <climits>

#include "core/float_environment.h"
#include "cpu/backend.h"
#include "cpu/cache.h"

namespace aerie::cpu {

namespace {

static_assert(kChunk == kPageSize);

constexpr int kItemsOfThread = 4;  // so many keep all threads busy to the end
// Query heads and rows of a block that share loads of the cache.
constexpr int kFewestQueries = 6, kMostQueries = 32;
constexpr int kMaxBlock = kMostQueries;  // rows of a block

// An op, cut into items: a block of rows for some kv heads.
class AttentionWork {
  public:
    // `widest`: floats of a row of scratch.
    AttentionWork(const Attention& op, int threads, int widest);

    int items() const { return (op_.qkv.rows + block_ - 1) / block_ * parts_; }
    int chunks() const { return chunks_; }
    double multiplications() const { return multiplications_; }
    size_t result_floats() const { return floats_before(items()); }

    // Calls run(task) for the tasks of an item, whose outputs go to the op's or to `stage`, if that
    // is not null. The results of their chunks have a place in `results`.
    template <class Run>
    void each_task(int item, float* stage, float* results, const Run& run) const;
    // The output of an item.
    Tensor output(int item) const {
        const int columns = queries_ * op_.shape.head_dim;
        return op_.out.row_range(first_row(item), rows_of(item))
            .col_range(item % parts_ * columns, columns);
    }

  private:
    int group() const { return op_.shape.heads / op_.shape.kv_heads; }
    int first_row(int item) const { return item / parts_ * block_; }
    int rows_of(int item) const { return std::min(block_, op_.qkv.rows - first_row(item)); }
    size_t floats_before(int item) const {
        return ChunkResults::size(chunks_, item * block_ * queries_, op_.shape.head_dim);
    }
    AttentionTask task_of(int item, int head) const;

    const Attention& op_;
    int queries_;  // query heads of an item
    int parts_;    // items of a block
    int block_;    // rows of a block; the last one may have fewer
    int first_chunk_ = 0;
    int chunks_ = 0;  // from the first to the last one that any row attends to
    double multiplications_ = 0;
};

AttentionWork::AttentionWork(const Attention& op, int threads, int widest) : op_(op) {
    const AttentionShape& shape = op.shape;
    // If the columns of an item are quantised they must be whole groups.
    const bool is_quantised = op.out.dtype != DType::F32;
    const int heads = is_quantised && group() * shape.head_dim % kGroup != 0 ? 2 : 1;
    queries_ = heads * group();
    parts_ = shape.kv_heads / heads;
    const int most = std::max(1, kMostQueries / group());
    const int fewest = std::min(most, (kFewestQueries + group() - 1) / group());
    block_ = std::clamp(op.qkv.rows * parts_ / (kItemsOfThread * threads), fewest, most);
    if (is_quantised) block_ = std::min(block_, widest / (queries_ * shape.head_dim));

    int first = INT_MAX, last = -1;
    for (int r = 0; r < op.qkv.rows; ++r) {
        const Row& row = row_of(op.rows, r);
        if (row.slot < 0) continue;
        const int seen = first_seen(row.position, op.window);
        first = std::min(first, seen);
        last = std::max(last, row.position);
        multiplications_ += 2.0 * (row.position + 1 - seen) * shape.heads * shape.head_dim;
    }
    if (last < 0) return;  // padding alone
    first_chunk_ = first / kChunk;
    chunks_ = last / kChunk + 1 - first_chunk_;
}

// The task of an item for the query heads from `head` on that share a kv head, as many as a task
// takes. Histories, output and results are still missing.
AttentionTask AttentionWork::task_of(int item, int head) const {
    const AttentionShape& shape = op_.shape;
    const KvLayer& kv = op_.kv;
    const int kv_column = head / group() * shape.head_dim;
    AttentionTask task = {};
    task.q = row_f32(op_.qkv, first_row(item)) + head * shape.head_dim;
    task.q_stride = size_t(op_.qkv.row_stride);
    task.rows = rows_of(item);
    task.group = std::min(kMaxQueries, group() - head % group());
    task.head_dim = shape.head_dim;
    task.scale = op_.scale;
    task.cache = {.k = element(kv.k, 0, kv_column),
                  .v = element(kv.v, 0, kv_column),
                  .k_stride = size_t(kv.k.row_stride),
                  .v_stride = size_t(kv.v.row_stride),
                  .type = float_type(kv.k.dtype)};
    task.first_chunk = first_chunk_;
    task.chunks = chunks_;
    return task;
}

template <class Run>
void AttentionWork::each_task(int item, float* stage, float* results, const Run& run) const {
    const int rows = rows_of(item), head_dim = op_.shape.head_dim;
    History histories[kMaxBlock];
    for (int r = 0; r < rows; ++r)
        histories[r] = history(row_of(op_.rows, first_row(item) + r), op_.kv, op_.window);
    float* const out = stage ? stage : row_f32(output(item), 0);
    const size_t out_stride = size_t(stage ? queries_ * head_dim : op_.out.row_stride);
    results += floats_before(item);
    for (int q = 0; q < queries_;) {
        AttentionTask task = task_of(item, item % parts_ * queries_ + q);
        task.histories = histories;
        task.out = out + q * head_dim;
        task.out_stride = out_stride;
        task.results = ChunkResults::in(results, chunks_, rows * task.group, head_dim);
        results += ChunkResults::size(chunks_, rows * task.group, head_dim);
        run(task);
        q += task.group;
    }
}

}  // namespace

template <>
void CpuBackend::execute(const Attention& op) {
    FloatEnvironment environment;
    const bool is_quantised = op.out.dtype != DType::F32;
    const AttentionWork all(op, pool_.threads(), reserved().widest);
    const int items = all.items(), chunks = all.chunks();
    // Where the outputs of a part of the op are floats until they are quantised; null if they stay.
    const auto stage_of = [&](int thread) {
        return is_quantised ? scratch_[size_t(thread)].row : nullptr;
    };
    // Computes whole outputs of items.
    const auto finish = [&](double work, void (*kernel)(const AttentionTask&)) {
        pool_.run(items, work / std::max(1, items), [&](int first, int last, int thread) {
            float* const stage = stage_of(thread);
            for (int item = first; item < last; ++item) {
                all.each_task(item, stage, chunks_, kernel);
                const Tensor out = all.output(item);
                for (int r = 0; is_quantised && r < out.rows; ++r)
                    kernels_.quantise(row<std::byte>(out, r), stage + r * out.cols, out.cols);
            }
        });
    };
    const bool shares_chunks = pool_.threads() > 1 && chunks > 1 &&
                               items < kItemsOfThread * pool_.threads() &&
                               all.result_floats() <= chunk_floats(reserved());
    if (!shares_chunks) return finish(all.multiplications(), kernels_.attention);

    const int units = items * chunks;
    pool_.run(units, all.multiplications() / units, [&](int first, int last, int thread) {
        for (int unit = first; unit < last;) {
            const int item = unit / chunks, begin = unit % chunks;
            const int end = std::min(chunks, begin + last - unit);
            all.each_task(item, stage_of(thread), chunks_, [&](const AttentionTask& task) {
                kernels_.attend_to_chunks(task, begin, end);
            });
            unit += end - begin;
        }
    });
    constexpr double kMerge = 2;  // operations on each element of a chunk's result
    finish(kMerge * double(all.result_floats()), kernels_.merge_chunks);
}

}  // namespace aerie::cpu
