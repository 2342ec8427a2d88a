// Vectors run along the inner elements, for several rows by several columns at a time. Each row and
// column has an accumulator of its own, which is reduced at the end of a chunk.
#include "free_order.h"

#include <immintrin.h>

#include <algorithm>

namespace aerie::free_order {

namespace {

#ifdef __AVX512F__
using Vector = __m512;
constexpr int kLanes = 16, kTileRows = 6;
Vector zero() {
    return _mm512_setzero_ps();
}
Vector load(const float* p) {
    return _mm512_loadu_ps(p);
}
Vector load(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
void store(float* p, Vector a) {
    _mm512_storeu_ps(p, a);
}
Vector fma(Vector a, Vector b, Vector c) {
    return _mm512_fmadd_ps(a, b, c);
}
float sum(Vector a) {
    return _mm512_reduce_add_ps(a);
}
#else
using Vector = __m256;
constexpr int kLanes = 8, kTileRows = 3;
Vector zero() {
    return _mm256_setzero_ps();
}
Vector load(const float* p) {
    return _mm256_loadu_ps(p);
}
Vector load(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
void store(float* p, Vector a) {
    _mm256_storeu_ps(p, a);
}
Vector fma(Vector a, Vector b, Vector c) {
    return _mm256_fmadd_ps(a, b, c);
}
float sum(Vector a) {
    const __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 pair = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_movehdup_ps(pair)));
}
#endif

constexpr int kTileColumns = 4;
#ifdef __AVX512VL__
constexpr int kQuantColumns = 4;  // 32 registers
#else
constexpr int kQuantColumns = 2;
#endif
constexpr int kStreams = 4;                    // rows side by side if there is one column
constexpr int kChunk = 1024, kChunkRows = 48;  // inner elements and rows that stay cached

float f16_to_float(uint16_t half) {
    return _cvtsh_ss(half);
}

// R rows by C columns of `count` inner elements, with U accumulators each.
template <int R, int C, int U, class W>
void add_tile(const Task& task, const W* w, const float* x, int row, int column, int k, int count) {
    Vector sums[U][R][C];
    for (int u = 0; u < U; ++u)
        for (int r = 0; r < R; ++r)
            for (int c = 0; c < C; ++c) sums[u][r][c] = zero();
    const W* weight = w + int64_t(row) * task.inner + k;
    const float* in = x + int64_t(column) * task.inner + k;
    for (int i = 0; i < count; i += U * kLanes)
        for (int u = 0; u < U; ++u) {
            Vector rows[R];
            for (int r = 0; r < R; ++r)
                rows[r] = load(weight + int64_t(r) * task.inner + i + u * kLanes);
            for (int c = 0; c < C; ++c) {
                const Vector value = load(in + int64_t(c) * task.inner + i + u * kLanes);
                for (int r = 0; r < R; ++r) sums[u][r][c] = fma(rows[r], value, sums[u][r][c]);
            }
        }
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < R; ++r) {
            float total = 0;
            for (int u = 0; u < U; ++u) total += sum(sums[u][r][c]);
            float& out = task.out[int64_t(column + c) * task.stride + row + r];
            out = k == 0 ? total : out + total;
        }
}

#if defined(__AVXVNNI__) || (defined(__AVX512VNNI__) && defined(__AVX512VL__))
__m256i dots(__m256i w, __m256i size, __m256i x) {
    return _mm256_dpbusd_epi32(_mm256_setzero_si256(), size, _mm256_sign_epi8(x, w));
}
#else
__m256i dots(__m256i w, __m256i size, __m256i x) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(size, _mm256_sign_epi8(x, w)),
                             _mm256_set1_epi16(1));
}
#endif

template <int R, int C>
void q8_tile(const Task& task, const BlockQ8_0* w, const BlockI8G32* x, int row, int column) {
    const int groups = task.inner / kGroup;
    const BlockQ8_0* weight = w + int64_t(row) * groups;
    const BlockI8G32* in = x + int64_t(column) * groups;
    __m256 sums[R][C];
    for (auto& of_row : sums)
        for (__m256& one : of_row) one = _mm256_setzero_ps();
    for (int g = 0; g < groups; ++g)
        for (int r = 0; r < R; ++r) {
            const BlockQ8_0& block = weight[int64_t(r) * groups + g];
            _mm_prefetch(reinterpret_cast<const char*>(&block) + 1024, _MM_HINT_T0);
            const __m256i q = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block.q));
            const __m256i size = _mm256_abs_epi8(q);
            const float scale = f16_to_float(block.scale);
            for (int c = 0; c < C; ++c) {
                const BlockI8G32& group = in[int64_t(c) * groups + g];
                const __m256i values =
                    _mm256_loadu_si256(reinterpret_cast<const __m256i*>(group.q));
                sums[r][c] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots(q, size, values)),
                                             _mm256_set1_ps(scale * group.scale), sums[r][c]);
            }
        }
    for (int c = 0; c < C; ++c)
        for (int r = 0; r < R; ++r) {
            const __m256 a = sums[r][c];
            __m128 half = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
            half = _mm_hadd_ps(half, half);
            task.out[int64_t(column + c) * task.stride + row + r] =
                _mm_cvtss_f32(_mm_hadd_ps(half, half));
        }
}

// Calls tile(rows, row) for 1 or R rows at a time.
template <int R, class Tile>
void for_rows(int first, int last, const Tile& tile) {
    int row = first;
    for (; row + R <= last; row += R) tile(std::integral_constant<int, R>(), row);
    for (; row < last; ++row) tile(std::integral_constant<int, 1>(), row);
}

template <class W>
void multiply_floats(const Task& task, const W* w, const float* x) {
    if (task.columns < kTileColumns) {
        for (int column = 0; column < task.columns; ++column)
            for_rows<kStreams>(task.first, task.last, [&](auto rows, int row) {
                add_tile<rows.value, 1, 2>(task, w, x, row, column, 0, task.inner);
            });
        return;
    }
    for (int first = task.first; first < task.last; first += kChunkRows)
        for (int k = 0; k < task.inner; k += kChunk)
            for (int column = 0; column < task.columns; column += kTileColumns)
                for_rows<kTileRows>(
                    first, std::min(first + kChunkRows, task.last), [&](auto rows, int row) {
                        add_tile<rows.value, kTileColumns, 1>(task, w, x, row, column, k,
                                                              std::min(kChunk, task.inner - k));
                    });
}

}  // namespace

void multiply(const Task& task, const float* w, const float* x) {
    multiply_floats(task, w, x);
}

void multiply(const Task& task, const uint16_t* w, const float* x) {
    multiply_floats(task, w, x);
}

void multiply(const Task& task, const BlockQ8_0* w, const BlockI8G32* x) {
    for (int first = task.first; first < task.last; first += kChunkRows)
        for (int column = 0; column < task.columns;) {
            const bool wide = column + kQuantColumns <= task.columns;
            for_rows<kStreams>(first, std::min(first + kChunkRows, task.last),
                               [&](auto rows, int row) {
                                   if (wide)
                                       q8_tile<rows.value, kQuantColumns>(task, w, x, row, column);
                                   else
                                       q8_tile<rows.value, 1>(task, w, x, row, column);
                               });
            column += wide ? kQuantColumns : 1;
        }
}

void widen(float* to, const uint16_t* w, int64_t count) {
    for (int64_t i = 0; i < count; i += kLanes) store(to + i, load(w + i));
}

void widen(float* to, const BlockQ8_0* w, int64_t count) {
    for (int64_t i = 0; i < count; i += kGroup) {
        const BlockQ8_0& block = w[i / kGroup];
        const __m256 scale = _mm256_set1_ps(f16_to_float(block.scale));
        for (int j = 0; j < kGroup; j += 8) {
            const __m128i q = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(block.q + j));
            _mm256_storeu_ps(to + i + j,
                             _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q))));
        }
    }
}

}  // namespace aerie::free_order
