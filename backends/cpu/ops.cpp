// The ops of the CPU backend that go row by row, but matmul: who works on what. Inner loops: one
// file an op.
#include <cassert>
#include <cmath>
#include <cstring>

#include "core/float_environment.h"
#include "cpu/backend.h"

namespace aerie::cpu {

namespace {

// Work of one element in units of a multiply-add, for Pool::run.
constexpr double kExpWork = 8, kNoiseWork = 40, kCopyWork = 1;

const Row& row_of(const Rows& rows, int index) {
    return *row<Row>(rows.block, index);
}

size_t cache_row(const KvLayer& kv, int sequence, int slot) {
    const int32_t* pages = row<int32_t>(kv.page_table, sequence);
    return size_t(pages[slot / kPageSize]) * kPageSize + size_t(slot % kPageSize);
}

History history(const Row& row, const KvLayer& kv) {
    if (row.slot < 0)
        return {.position = -1, .prefix = 0, .path = nullptr, .slot = -1, .pages = nullptr};
    return {.position = row.position,
            .prefix = row.prefix,
            .path = row.path,
            .slot = row.slot,
            .pages = aerie::cpu::row<int32_t>(kv.page_table, row.sequence)};
}

std::byte* element(const Tensor& t, size_t row_index, int column) {
    return row<std::byte>(t, int(row_index)) + size_bytes(t.dtype, size_t(column));
}

// All rows of qkv for the query heads from `head` on that share a kv head, as many as a task takes;
// histories and output are missing.
AttentionTask attention_task(const Tensor& qkv, const AttentionShape& shape, const KvLayer& kv,
                             int head) {
    const int group = shape.heads / shape.kv_heads, kv_column = head / group * shape.head_dim;
    AttentionTask task = {};
    task.q = row_f32(qkv, 0) + head * shape.head_dim;
    task.q_stride = size_t(qkv.row_stride);
    task.rows = qkv.rows;
    task.group = std::min(kMostQueries, group - head % group);
    task.head_dim = shape.head_dim;
    task.scale = float(1.0 / std::sqrt(double(shape.head_dim)));
    task.cache = {.k = element(kv.k, 0, kv_column),
                  .v = element(kv.v, 0, kv_column),
                  .k_stride = size_t(kv.k.row_stride),
                  .v_stride = size_t(kv.v.row_stride),
                  .type = float_type(kv.k.dtype)};
    return task;
}

}  // namespace

void CpuBackend::do_embed(Tensor out, const Weight& table, Rows rows) {
    FloatEnvironment environment;
    const CpuWeight& weight = static_cast<const CpuWeight&>(table);
    for (int r = 0; r < out.rows; ++r) {
        const Row& place = row_of(rows, r);
        float* to = row_f32(out, r);
        if (place.slot < 0)
            std::memset(to, 0, size_t(out.cols) * sizeof(float));
        else
            weight.read_row(to, place.token, kernels_);
    }
}

template <class Make>
void CpuBackend::make_rows(Tensor out, double work, const Make& make) {
    pool_.run(out.rows, work, [&](int first, int last, int thread) {
        for (int r = first; r < last; ++r) {
            if (out.dtype == DType::F32) {
                make(row_f32(out, r), r);
            } else {
                make(scratch_[size_t(thread)].row, r);
                kernels_.quantise(row<std::byte>(out, r), scratch_[size_t(thread)].row, out.cols);
            }
        }
    });
}

void CpuBackend::do_rms_norm(Tensor out, Tensor x, Tensor weight, float epsilon) {
    FloatEnvironment environment;
    make_rows(out, 2.0 * x.cols, [&](float* to, int r) {
        kernels_.rms_norm(to, row_f32(x, r), row_f32(weight, 0), x.cols, epsilon);
    });
}

void CpuBackend::do_rope_append(Tensor qkv, Tensor rope, Rows rows, const AttentionShape& shape,
                                const KvLayer& kv) {
    FloatEnvironment environment;
    pool_.run(qkv.rows, 4.0 * qkv.cols, [&](int first, int last, int) {
        for (int r = first; r < last; ++r) {
            const Row& place = row_of(rows, r);
            if (place.slot < 0) continue;
            assert(place.position < rope.rows);
            const size_t slot_row = cache_row(kv, place.sequence, place.slot);
            kernels_.rope_append({.qkv = row_f32(qkv, r),
                                  .rope = row_f32(rope, place.position),
                                  .heads = shape.heads,
                                  .kv_heads = shape.kv_heads,
                                  .head_dim = shape.head_dim,
                                  .k = element(kv.k, slot_row, 0),
                                  .v = element(kv.v, slot_row, 0),
                                  .type = float_type(kv.k.dtype)});
        }
    });
}

void CpuBackend::do_attention(Tensor out, Tensor qkv, Rows rows, const AttentionShape& shape,
                              const KvLayer& kv) {
    FloatEnvironment environment;
    constexpr int kQueries = 32,
                  kMostBlock = 16;  // query heads, rows that share loads of the cache
    const int group = shape.heads / shape.kv_heads, columns = group * shape.head_dim;
    const bool quantised = out.dtype != DType::F32;
    // kv heads of a part: its columns are whole groups where they are quantised.
    const int heads = quantised && columns % kGroup != 0 ? 2 : 1;
    int block = std::clamp(kQueries / group, 1, kMostBlock);
    if (quantised) block = std::min(block, reserved().widest / (heads * columns));
    const int blocks = (qkv.rows + block - 1) / block, parts = shape.kv_heads / heads;
    double positions = 0;
    for (int r = 0; r < qkv.rows; ++r) positions += row_of(rows, r).position + 1;
    const double work = 2 * positions / blocks * heads * columns;
    pool_.run(blocks * parts, work, [&](int first, int last, int thread) {
        for (int i = first; i < last; ++i) {
            const int begin = i / parts * block, head = i % parts * heads;
            const int count = std::min(block, qkv.rows - begin);
            History histories[kMostBlock];
            for (int r = 0; r < count; ++r) histories[r] = history(row_of(rows, begin + r), kv);
            const Tensor part =
                out.row_range(begin, count).col_range(head * columns, heads * columns);
            float* stage = scratch_[size_t(thread)].row;
            for (int h = 0; h < heads * group;) {
                AttentionTask task =
                    attention_task(qkv.row_range(begin, count), shape, kv, head * group + h);
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

void CpuBackend::do_swiglu(Tensor out, Tensor gate_up) {
    FloatEnvironment environment;
    make_rows(out, kExpWork * out.cols, [&](float* to, int r) {
        const float* gate = row_f32(gate_up, r);
        kernels_.swiglu(to, gate, gate + out.cols, out.cols);
    });
}

void CpuBackend::do_add(Tensor out, Tensor a, Tensor b) {
    FloatEnvironment environment;
    pool_.run(out.rows, kCopyWork * out.cols, [&](int first, int last, int) {
        for (int r = first; r < last; ++r)
            kernels_.add(row_f32(out, r), row_f32(a, r), row_f32(b, r), out.cols);
    });
}

void CpuBackend::do_copy(Tensor out, Tensor x) {
    FloatEnvironment environment;
    make_rows(out, kCopyWork * out.cols, [&](float* to, int r) {
        std::memmove(to, row_f32(x, r), size_t(out.cols) * sizeof(float));
    });
}

void CpuBackend::do_gather_rows(Tensor out, Tensor x, Tensor index) {
    const int32_t* chosen = row<int32_t>(index, 0);
    for (int r = 0; r < out.rows; ++r) {
        assert(chosen[r] >= 0 && chosen[r] < x.rows);
        std::memmove(row_f32(out, r), row_f32(x, chosen[r]), size_t(out.cols) * sizeof(float));
    }
}

void CpuBackend::do_kv_compact(const KvLayer& kv, int sequence, Tensor from_slots, int to_slot) {
    const int32_t* from = row<int32_t>(from_slots, 0);
    for (int i = 0; i < from_slots.cols; ++i) {
        const size_t source = cache_row(kv, sequence, from[i]);
        const size_t target = cache_row(kv, sequence, to_slot + i);
        if (source == target) continue;
        for (const Tensor& cache : {kv.k, kv.v})
            std::memcpy(element(cache, target, 0), element(cache, source, 0),
                        size_bytes(cache.dtype, size_t(cache.cols)));
    }
}

void CpuBackend::do_noise(Tensor out, uint64_t seed, Tensor positions) {
    FloatEnvironment environment;
    constexpr int kBlock = 64;  // tokens of 16 counters
    const int blocks = (out.cols + kBlock - 1) / kBlock;
    const int32_t* position = row<int32_t>(positions, 0);
    pool_.run(out.rows * blocks, kNoiseWork * kBlock, [&](int first, int last, int) {
        for (int i = first; i < last;) {
            const int r = i / blocks, token = i % blocks * kBlock;
            const int end = std::min(last, (r + 1) * blocks);
            const int count = std::min((end - i) * kBlock, out.cols - token);
            kernels_.noise(row_f32(out, r) + token, seed, position[r], token, count);
            i = end;
        }
    });
}

}  // namespace aerie::cpu
