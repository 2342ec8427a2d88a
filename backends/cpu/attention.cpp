// Attention of some rows, for the query heads of one kv head. The history is cut into chunks of 64
// logical positions; each chunk has its own maximum of S and sum of P, and chunks are merged in
// order. Slots only say where to load from, and it changes no bit which queries share a load.
// Positions of the first chunk that lie before a row's window count as -inf.
#include "cpu/columns.h"
#include "cpu/isa_kernels.h"
#include "cpu/tile.h"
#include "cpu/vector_math.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr int kChunk = 64;

// One query head of one row, and its softmax so far.
struct Query {
    const float* q;
    float* out;
    float max, sum;
};

// The cache rows of a chunk, in logical order. A row attends to [begin, end) of them.
template <class T>
struct Chunk {
    const T* k[kChunk];
    const T* v[kChunk];
    int begin, end;
};

template <class T>
void find_chunk(Chunk<T>& chunk, const Cache& cache, const History& h, int first) {
    const int left = h.position + 1 - first;
    chunk.begin = h.first > first ? h.first - first : 0;
    chunk.end = left < kChunk ? left : kChunk;
    for (int i = chunk.begin; i < chunk.end; ++i) {
        const int position = first + i;
        const int slot = position < h.prefix     ? position
                         : position < h.position ? h.path[position - h.prefix]
                                                 : h.slot;
        const size_t row = size_t(h.pages[slot / kChunk]) * kChunk + size_t(slot % kChunk);
        chunk.k[i] = static_cast<const T*>(cache.k) + row * cache.k_stride;
        chunk.v[i] = static_cast<const T*>(cache.v) + row * cache.v_stride;
    }
}

template <int R, int C, class T>
void score_rows(float (&scores)[C][kChunk], const float* const (&q)[C], const Chunk<T>& chunk,
                int first, int head_dim) {
    const T* rows[R];
    for (int r = 0; r < R; ++r) rows[r] = chunk.k[first + r];
    Tile<R, C> tile;
    tile.clear();
    tile.run(rows, q, head_dim);
    float sums[C][R];
    tile.sums(sums);
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < R; ++r) scores[c][first + r] = sums[c][r];
}

// S of the chunk, scaled; -inf outside [begin, end).
template <int C, class T>
void score(float (&scores)[C][kChunk], Query* const* queries, const Chunk<T>& chunk,
           const AttentionTask& task) {
    constexpr int R = tile_rows(C);
    const float* q[C];
    for (int c = 0; c < C; ++c) {
        q[c] = queries[c]->q;
        for (int i = 0; i < kChunk; i += kLanes) store(scores[c] + i, splat(-__builtin_inff()));
    }
    int i = chunk.begin;
    for (; i + R <= chunk.end; i += R) score_rows<R, C>(scores, q, chunk, i, task.head_dim);
    for (; i < chunk.end; ++i) score_rows<1, C>(scores, q, chunk, i, task.head_dim);
    const F32x16 scale = splat(task.scale);
    for (int c = 0; c < C; ++c)
        for (int j = 0; j < kChunk; j += kLanes) store(scores[c] + j, load(scores[c] + j) * scale);
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

// Replaces S by P = exp(S - shift); returns the sum of P.
float exponentials(float* scores, float shift) {
    F32x16 total = splat(0.0f);
    for (int i = 0; i < kChunk; i += kLanes) {
        const F32x16 e = exp(load(scores + i) - splat(shift));
        store(scores + i, e);
        total = total + e;
    }
    return sum(total);
}

// How a chunk is merged into what came before: out = out * keep + chunk * weight.
struct Merge {
    float keep, weight;
};

Merge softmax(Query& query, float* scores) {
    const float chunk_max = largest(scores);
    const float chunk_sum = exponentials(scores, chunk_max);
    const float new_max = chunk_max > query.max ? chunk_max : query.max;
    const Merge merge = {exp_of(query.max - new_max), exp_of(chunk_max - new_max)};
    query.max = new_max;
    query.sum = query.sum * merge.keep + chunk_sum * merge.weight;
    return merge;
}

// Merges P V of N * 16 elements from d on into the outputs of C queries.
template <int N, int C, class T>
void mix(Query* const* queries, const float (&p)[C][kChunk], const Merge (&merges)[C],
         const Chunk<T>& chunk, int d) {
    F32x16 lanes[C][N];
    for (auto& query : lanes)
        for (F32x16& lane : query) lane = splat(0.0f);
    for (int i = chunk.begin; i < chunk.end; ++i) {
        F32x16 v[N];
        for (int j = 0; j < N; ++j) v[j] = load(chunk.v[i] + d + j * kLanes);
        for (int c = 0; c < C; ++c) {
            const F32x16 weight = splat(p[c][i]);
            for (int j = 0; j < N; ++j) lanes[c][j] = lanes[c][j] + weight * v[j];
        }
    }
    for (int c = 0; c < C; ++c)
        for (int j = 0; j < N; ++j) {
            float* place = queries[c]->out + d + j * kLanes;
            const F32x16 before = load(place) * splat(merges[c].keep);
            store(place, before + lanes[c][j] * splat(merges[c].weight));
        }
}

template <int C, class T>
void attend_together(Query* const* queries, const Chunk<T>& chunk, const AttentionTask& task) {
    float scores[C][kChunk];
    Merge merges[C];
    score<C>(scores, queries, chunk, task);
    for (int c = 0; c < C; ++c) merges[c] = softmax(*queries[c], scores[c]);
    constexpr int N = C == 1 ? 4 : 2;
    int d = 0;
    for (; d + N * kLanes <= task.head_dim; d += N * kLanes)
        mix<N, C>(queries, scores, merges, chunk, d);
    for (; d < task.head_dim; d += kLanes) mix<1, C>(queries, scores, merges, chunk, d);
}

template <class T>
void attend_chunk(Query* const* queries, int count, const Chunk<T>& chunk,
                  const AttentionTask& task) {
    for_even_columns<3>(count, [&](auto columns, int first) {
        attend_together<columns.value>(queries + first, chunk, task);
    });
}

// Attention of all rows to the chunk that begins at position `first`. Rows of one sequence that
// have all of it in their prefix read the same cache rows and are taken together; the others go one
// by one.
template <class T>
void attend_rows(Query* queries, int first, const AttentionTask& task) {
    Chunk<T> chunk;
    Query *together[kMaxQueries], *alone[kMaxQueries];
    int count = 0;
    const History* shared = nullptr;
    for (int r = 0; r < task.rows; ++r) {
        const History& h = task.histories[r];
        if (h.slot < 0 || h.position < first || h.first >= first + kChunk) continue;
        const bool whole =
            h.first <= first && h.prefix >= first + kChunk && (!shared || shared->pages == h.pages);
        Query** list = whole ? together + count : alone;
        for (int g = 0; g < task.group; ++g) list[g] = queries + r * task.group + g;
        if (whole) {
            shared = &h;
            count += task.group;
        } else {
            find_chunk(chunk, task.cache, h, first);
            attend_chunk(alone, task.group, chunk, task);
        }
    }
    if (!shared) return;
    find_chunk(chunk, task.cache, *shared, first);
    attend_chunk(together, count, chunk, task);
}

template <class T>
void attend(const AttentionTask& task) {
    Query queries[kMaxQueries];
    int earliest = __INT_MAX__, longest = -1;
    for (int r = 0; r < task.rows; ++r) {
        const History& h = task.histories[r];
        if (h.slot >= 0 && h.first < earliest) earliest = h.first;
        if (h.slot >= 0 && h.position > longest) longest = h.position;
        float* out = task.out + size_t(r) * task.out_stride;
        for (int i = 0; i < task.group * task.head_dim; ++i) out[i] = 0;
        for (int g = 0; g < task.group; ++g)
            queries[r * task.group + g] = {task.q + size_t(r) * task.q_stride + g * task.head_dim,
                                           out + g * task.head_dim, -__builtin_inff(), 0.0f};
    }
    for (int first = earliest / kChunk * kChunk; first <= longest; first += kChunk)
        attend_rows<T>(queries, first, task);
    for (int i = 0; i < task.rows * task.group; ++i) {
        if (task.histories[i / task.group].slot < 0) continue;
        const F32x16 scale = reciprocal(splat(queries[i].sum));
        float* out = queries[i].out;
        for (int d = 0; d < task.head_dim; d += kLanes) store(out + d, load(out + d) * scale);
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
