// Attention of some rows, for the query heads of one kv head. The history is cut into chunks of 64
// logical positions; each chunk has its own maximum of S and sum of P, and chunks are merged in
// order. Slots only say where to load from, and it changes no bit which queries share a load, nor
// which threads compute which chunks. Positions of the first chunk that lie before a row's window
// count as -inf.
#include "cpu/columns.h"
#include "cpu/isa_kernels.h"
#include "cpu/tile.h"
#include "cpu/vector_math.h"

namespace aerie::cpu::AERIE_ISA {
namespace {

constexpr int kMostTogether = kRegisters == 32 ? 6 : kParts == 2 ? 4 : 3;  // queries of a tile
constexpr int kScalars = kMaxQueries + kLanes;  // queries, and room for whole vectors of them

// The queries of a task, and their softmax so far.
struct Queries {
    const float* q[kMaxQueries];
    float* out[kMaxQueries];
    float max[kScalars] = {}, sum[kScalars] = {};
};

// The scores of some queries in one chunk, and their softmax.
struct Scores {
    float s[kMaxQueries][kChunk];  // S, then P
    float max[kScalars] = {}, sum[kScalars] = {};
    // How the chunk is merged into what came before: out = out * keep + chunk * weight.
    float keep[kScalars], weight[kScalars];
};

// The cache rows of a chunk, in logical order. A row attends to [begin, end) of them; the pointers
// beyond, up to the next multiple of 8, are valid too.
template <class T>
struct Chunk {
    const T* k[kChunk];
    const T* v[kChunk];
    int begin, end;
    // The first key of the chunk that is read next, and elements between its keys; null if it is
    // not known to lie in one page.
    const T* next_k;
    size_t next_stride;
};

// Asks for the cache line of each 64 bytes of a row, which no hardware prefetcher foresees: rows of
// other kv heads lie between those of this one.
template <class T>
inline void prefetch_row(const T* row, int count) {
    for (int i = 0; i < count; i += int(64 / sizeof(T))) __builtin_prefetch(row + i);
}

template <class T>
void find_chunk(Chunk<T>& chunk, const Cache& cache, const History& h, int first) {
    const auto place = [&](int i, size_t row) {
        chunk.k[i] = static_cast<const T*>(cache.k) + row * cache.k_stride;
        chunk.v[i] = static_cast<const T*>(cache.v) + row * cache.v_stride;
    };
    const int left = h.position + 1 - first;
    chunk.begin = h.first > first ? h.first - first : 0;
    chunk.end = left < kChunk ? left : kChunk;
    const int prefix = h.prefix - first < chunk.end ? h.prefix - first : chunk.end;
    const int begin = chunk.begin / 8 * 8, end = (chunk.end + 7) / 8 * 8;
    if (prefix > begin) {
        const size_t page = size_t(h.pages[first / kChunk]) * kChunk;  // all of it is one page
        for (int i = begin; i < prefix; ++i) place(i, page + size_t(i));
    }
    for (int i = prefix > begin ? prefix : begin; i < chunk.end; ++i) {
        const int position = first + i;
        const int slot = position < h.position ? h.path[position - h.prefix] : h.slot;
        place(i, size_t(h.pages[slot / kChunk]) * kChunk + size_t(slot % kChunk));
    }
    const bool has_next = h.prefix >= first + 2 * kChunk;
    chunk.next_k = has_next ? static_cast<const T*>(cache.k) +
                                  size_t(h.pages[first / kChunk + 1]) * kChunk * cache.k_stride
                            : nullptr;
    chunk.next_stride = cache.k_stride;
    for (int i = chunk.end; i < end; ++i) {
        chunk.k[i] = chunk.k[chunk.end - 1];
        chunk.v[i] = chunk.v[chunk.end - 1];
    }
}

// S of C queries, scaled; -inf outside [begin, end).
template <int C, class T>
void score(float (*scores)[kChunk], const float* const* queries, const Chunk<T>& chunk,
           const AttentionTask& task) {
    constexpr int R = tile_rows(C);
    const float* q[C];
    for (int c = 0; c < C; ++c) q[c] = queries[c];
    for (int i = chunk.begin / R * R; i < chunk.end; i += R) {
        const T* rows[R];
        for (int r = 0; r < R; ++r) {
            rows[r] = chunk.k[i + r];
            prefetch_row(chunk.v[i + r], task.head_dim);
        }
        Tile<R, C> tile;
        tile.run(rows, q, task.head_dim);
        float sums[C][R];
        tile.sums(sums);
        for (int c = 0; c < C; ++c) __builtin_memcpy(scores[c] + i, sums[c], sizeof(sums[c]));
    }
    const F32x16 scale = splat(task.scale);
    for (int c = 0; c < C; ++c) {
        for (int i = 0; i < chunk.begin; ++i) scores[c][i] = -__builtin_inff();
        for (int i = chunk.end; i < kChunk; ++i) scores[c][i] = -__builtin_inff();
        for (int j = 0; j < kChunk; j += kLanes) store(scores[c] + j, load(scores[c] + j) * scale);
    }
}

float largest(const float* x) {
    F32x16 lanes = load(x);
    for (int i = kLanes; i < kChunk; i += kLanes) lanes = max(load(x + i), lanes);
    return largest_lane(lanes);
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

// Takes the softmax of a chunk into that of the queries [first, first + count), and says how to
// merge the chunk.
void merge_softmax(Queries& queries, Scores& chunk, int first, int count) {
    for_lanes(count, [&](int i, int n) {
        float* const query_max = queries.max + first + i;
        float* const query_sum = queries.sum + first + i;
        const F32x16 old_max = load(query_max), chunk_max = load(chunk.max + i);
        const F32x16 new_max = max(chunk_max, old_max);
        const F32x16 keep = exp(old_max - new_max), weight = exp(chunk_max - new_max);
        store(chunk.keep + i, keep);
        store(chunk.weight + i, weight);
        store_some(query_max, new_max, n);
        store_some(query_sum, load(query_sum) * keep + load(chunk.sum + i) * weight, n);
    });
}

// Merges a chunk's part of an output, whose first element is at `place`.
inline void merge(float* place, Part chunk, Part keep, Part weight) {
    store_part(place, load_part(place) * keep + chunk * weight);
}

// P V of N registers from element d on, for C queries: merged into their outputs, or as it is.
template <bool is_merged, int N, int C, class T>
void mix(float* const* outs, const float (*p)[kChunk], const float* keep, const float* weight,
         const Chunk<T>& chunk, int d) {
    Part lanes[C][N];
    for (auto& query : lanes)
        for (Part& part : query) part = splat_part(0.0f);
    for (int i = chunk.begin; i < chunk.end; ++i) {
        Part v[N];
        for (int j = 0; j < N; ++j) v[j] = held(load_part(chunk.v[i] + d + j * kPartLanes));
        if (chunk.next_k) __builtin_prefetch(chunk.next_k + size_t(i) * chunk.next_stride + d);
        for (int c = 0; c < C; ++c) {
            const Part share = splat_part(p[c][i]);
            for (int j = 0; j < N; ++j) lanes[c][j] = lanes[c][j] + share * v[j];
        }
    }
    for (int c = 0; c < C; ++c)
        for (int j = 0; j < N; ++j) {
            float* const place = outs[c] + d + j * kPartLanes;
            if constexpr (is_merged)
                merge(place, lanes[c][j], splat_part(keep[c]), splat_part(weight[c]));
            else
                store_part(place, lanes[c][j]);
        }
}

// Attention of the queries [first, first + count) to one chunk, of which they attend to the same
// cache rows: merged into their outputs and softmax, or as it is.
template <bool is_merged, class T>
void attend(Queries& queries, Scores& scores, int first, int count, const Chunk<T>& chunk,
            const AttentionTask& task) {
    for_even_columns<kMostTogether>(count, [&](auto columns, int c) {
        score<columns.value>(scores.s + c, queries.q + first + c, chunk, task);
    });
    for (int i = 0; i < count; ++i) {
        scores.max[i] = largest(scores.s[i]);
        scores.sum[i] = exponentials(scores.s[i], scores.max[i]);
    }
    if constexpr (is_merged) merge_softmax(queries, scores, first, count);
    for_even_columns<kMostTogether>(count, [&](auto columns, int c) {
        constexpr int C = columns.value, N = kRegisters == 32 || C <= 2 ? 4 : 2, kLeast = kParts;
        const auto mix_from = [&]<int n>(Constant<n>, int d) {
            mix<is_merged, n, C>(queries.out + first + c, scores.s + c, scores.keep + c,
                                 scores.weight + c, chunk, d);
        };
        int d = 0;
        for (; d + N * kPartLanes <= task.head_dim; d += N * kPartLanes) mix_from(Constant<N>(), d);
        for (; d < task.head_dim; d += kLanes) mix_from(Constant<kLeast>(), d);
    });
}

bool attends(const History& h, int first) {
    return h.slot >= 0 && h.position >= first && h.first < first + kChunk;
}

// Whether all of the chunk lies in the row's prefix and window.
bool has_whole(const History& h, int first) {
    return h.first <= first && h.prefix >= first + kChunk;
}

// Calls visit(row, count) for the rows that attend to the chunk from position `first` on.
// Neighbours of one sequence that have all of it in their prefix read the same cache rows and are
// taken together; the others go one by one.
template <class Visit>
void each_run(const AttentionTask& task, int first, const Visit& visit) {
    for (int r = 0, count = 0; r < task.rows; r += count) {
        const History& h = task.histories[r];
        const auto joins = [&](const History& next) {
            return has_whole(next, first) && attends(next, first) && next.pages == h.pages;
        };
        count = 1;
        if (has_whole(h, first))
            while (r + count < task.rows && joins(task.histories[r + count])) ++count;
        if (attends(h, first)) visit(r, count);
    }
}

Queries queries_of(const AttentionTask& task) {
    Queries queries;
    for (int i = 0; i < task.rows * task.group; ++i) {
        const int r = i / task.group, offset = i % task.group * task.head_dim;
        queries.q[i] = task.q + size_t(r) * task.q_stride + offset;
        queries.out[i] = task.out + size_t(r) * task.out_stride + offset;
        queries.max[i] = -__builtin_inff();
        queries.sum[i] = 0;
    }
    return queries;
}

template <class T>
void attend_to_all(Queries& queries, const AttentionTask& task) {
    Scores scores;
    for (int i = 0; i < task.chunks; ++i) {
        const int first = (task.first_chunk + i) * kChunk;
        each_run(task, first, [&](int r, int count) {
            Chunk<T> chunk;
            find_chunk(chunk, task.cache, task.histories[r], first);
            attend<true>(queries, scores, r * task.group, count * task.group, chunk, task);
        });
    }
}

// Points the outputs of the queries to the results of the task's i-th chunk.
template <class T>
void attend_alone(Queries& queries, int i, const AttentionTask& task) {
    const int first = (task.first_chunk + i) * kChunk, all = task.rows * task.group;
    Scores scores;
    each_run(task, first, [&](int r, int count) {
        Chunk<T> chunk;
        find_chunk(chunk, task.cache, task.histories[r], first);
        const int begin = r * task.group, taken = count * task.group;
        const size_t place = size_t(i) * size_t(all) + size_t(begin);
        for (int j = 0; j < taken; ++j)
            queries.out[begin + j] =
                task.results.values + (place + size_t(j)) * size_t(task.head_dim);
        attend<false>(queries, scores, begin, taken, chunk, task);
        for (int j = 0; j < taken; ++j) {
            task.results.max[place + size_t(j)] = scores.max[j];
            task.results.sum[place + size_t(j)] = scores.sum[j];
        }
    });
}

void clear_outputs(const AttentionTask& task) {
    for (int r = 0; r < task.rows; ++r) {
        float* const out = task.out + size_t(r) * task.out_stride;
        for (int i = 0; i < task.group * task.head_dim; i += kLanes) store(out + i, splat(0.0f));
    }
}

// Divides the outputs by the sums of P.
void finish(const Queries& queries, const AttentionTask& task) {
    for (int i = 0; i < task.rows * task.group; ++i) {
        if (task.histories[i / task.group].slot < 0) continue;
        const F32x16 scale = reciprocal(splat(queries.sum[i]));
        float* out = queries.out[i];
        for (int d = 0; d < task.head_dim; d += kLanes) store(out + d, load(out + d) * scale);
    }
}

}  // namespace

void attention(const AttentionTask& task) {
    Queries queries = queries_of(task);
    clear_outputs(task);
    if (task.cache.type == Float::F16)
        attend_to_all<Half>(queries, task);
    else
        attend_to_all<float>(queries, task);
    finish(queries, task);
}

void attend_to_chunks(const AttentionTask& task, int first, int last) {
    Queries queries = queries_of(task);
    for (int i = first; i < last; ++i) {
        if (task.cache.type == Float::F16)
            attend_alone<Half>(queries, i, task);
        else
            attend_alone<float>(queries, i, task);
    }
}

void merge_chunks(const AttentionTask& task) {
    Queries queries = queries_of(task);
    clear_outputs(task);
    Scores chunk;
    for (int i = 0; i < task.chunks; ++i)
        each_run(task, (task.first_chunk + i) * kChunk, [&](int r, int count) {
            const int begin = r * task.group, taken = count * task.group;
            const size_t place = size_t(i) * size_t(task.rows * task.group) + size_t(begin);
            __builtin_memcpy(chunk.max, task.results.max + place, size_t(taken) * sizeof(float));
            __builtin_memcpy(chunk.sum, task.results.sum + place, size_t(taken) * sizeof(float));
            merge_softmax(queries, chunk, begin, taken);
            const float* values = task.results.values + place * size_t(task.head_dim);
            for (int j = 0; j < taken; ++j, values += task.head_dim)
                for (int d = 0; d < task.head_dim; d += kPartLanes)
                    merge(queries.out[begin + j] + d, load_part(values + d),
                          splat_part(chunk.keep[j]), splat_part(chunk.weight[j]));
        });
    finish(queries, task);
}

}  // namespace aerie::cpu::AERIE_ISA
