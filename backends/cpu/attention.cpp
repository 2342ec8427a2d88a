// One row's attention for the query heads of one kv head. The history is cut into chunks of 64
// logical positions; each chunk has its own maximum and sum, and chunks are merged in order. Slots
// only say where to load from.
#include "cpu/isa_kernels.h"
#include "cpu/vector_math.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr int kChunk = 64;

// Rows of the cache that hold the chunk's positions, in logical order.
int find_rows(size_t* rows, const History& h, int first) {
    const int count = h.position + 1 - first < kChunk ? h.position + 1 - first : kChunk;
    for (int i = 0; i < count; ++i) {
        const int position = first + i;
        const int slot = position < h.prefix     ? position
                         : position < h.position ? h.path[position - h.prefix]
                                                 : h.slot;
        rows[i] = size_t(h.pages[slot / kChunk]) * kChunk + size_t(slot % kChunk);
    }
    return count;
}

template <class T>
F32x16 dot_lanes(const float* q, const T* k, int head_dim) {
    F32x16 lanes = splat(0.0f);
    for (int d = 0; d < head_dim; d += kLanes) lanes = fma(load(q + d), load(k + d), lanes);
    return lanes;
}

// Scaled scores of the chunk; positions beyond `count` get -inf.
template <class T>
void score(float* scores, const AttentionTask& task, const float* q, const size_t* rows,
           int count) {
    const T* k = static_cast<const T*>(task.cache.k);
    for (int i = 0; i < kChunk; i += kLanes) store(scores + i, splat(-__builtin_inff()));
    for (int i = 0; i < count; i += 4) {
        F32x16 lanes[4];
        for (int j = 0; j < 4; ++j) {
            const int row = i + j < count ? i + j : count - 1;
            lanes[j] = dot_lanes(q, k + rows[row] * task.cache.k_stride, task.head_dim);
        }
        sum4(scores + i, lanes);
    }
    for (int i = count; i % 4 != 0; ++i) scores[i] = -__builtin_inff();
    const F32x16 scale = splat(task.scale);
    for (int i = 0; i < kChunk; i += kLanes) store(scores + i, load(scores + i) * scale);
}

float largest(const float* x) {
    F32x16 lanes = load(x);
    for (int i = kLanes; i < kChunk; i += kLanes) lanes = max(load(x + i), lanes);
    float values[kLanes], best = -__builtin_inff();
    store(values, lanes);
    for (float value : values) best = value > best ? value : best;
    return best;
}

float exp_of(float x) {
    float lanes[kLanes];
    store(lanes, exp(splat(x)));
    return lanes[0];
}

// scores become exp(score - shift); returns their sum.
float exponentials(float* scores, float shift) {
    F32x16 total = splat(0.0f);
    for (int i = 0; i < kChunk; i += kLanes) {
        const F32x16 e = exp(load(scores + i) - splat(shift));
        store(scores + i, e);
        total = total + e;
    }
    return sum(total);
}

// out = out * keep + weight * sum_i p_i v_i, for N * 16 elements.
template <int N, class T>
void mix(float* out, const float* p, const T* v, size_t stride, const size_t* rows, int count,
         float keep, float weight) {
    F32x16 lanes[N];
    for (F32x16& lane : lanes) lane = splat(0.0f);
    for (int i = 0; i < count; ++i) {
        const F32x16 pi = splat(p[i]);
        const T* row = v + rows[i] * stride;
        for (int j = 0; j < N; ++j) lanes[j] = fma(pi, load(row + j * kLanes), lanes[j]);
    }
    for (int j = 0; j < N; ++j) {
        float* place = out + j * kLanes;
        store(place, load(place) * splat(keep) + lanes[j] * splat(weight));
    }
}

struct Running {
    float max, sum;
};

template <class T>
void attend_chunk(const AttentionTask& task, const float* q, float* out, Running& running,
                  const size_t* rows, int count) {
    float scores[kChunk];
    score<T>(scores, task, q, rows, count);
    const float chunk_max = largest(scores);
    const float chunk_sum = exponentials(scores, chunk_max);
    const float new_max = chunk_max > running.max ? chunk_max : running.max;
    const float keep = exp_of(running.max - new_max), weight = exp_of(chunk_max - new_max);
    running = {new_max, running.sum * keep + chunk_sum * weight};
    const T* v = static_cast<const T*>(task.cache.v);
    int d = 0;
    for (; d + 4 * kLanes <= task.head_dim; d += 4 * kLanes)
        mix<4>(out + d, scores, v + d, task.cache.v_stride, rows, count, keep, weight);
    for (; d < task.head_dim; d += kLanes)
        mix<1>(out + d, scores, v + d, task.cache.v_stride, rows, count, keep, weight);
}

template <class T>
void attend(const AttentionTask& task) {
    for (int i = 0; i < task.group * task.head_dim; ++i) task.out[i] = 0;
    for (int g = 0; g < task.group; ++g) {
        const float* q = task.q + g * task.head_dim;
        float* out = task.out + g * task.head_dim;
        Running running = {-__builtin_inff(), 0.0f};
        for (int first = 0; first <= task.history.position; first += kChunk) {
            size_t rows[kChunk];
            const int count = find_rows(rows, task.history, first);
            attend_chunk<T>(task, q, out, running, rows, count);
        }
        const F32x16 total = splat(running.sum);
        for (int d = 0; d < task.head_dim; d += kLanes) store(out + d, load(out + d) / total);
    }
}

}  // namespace

void attention(const AttentionTask& task) {
    if (task.cache.type == Float::F16)
        attend<Half>(task);
    else
        attend<float>(task);
}

}  // namespace aerie::cpu::AERIE_ISA
