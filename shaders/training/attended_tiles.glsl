// Tiles of attention. A workgroup has kSide rows of one matrix of heads, and takes kSide rows of
// another one at a time; an invocation has kOwn x kBeside elements of the tile of scores between
// them, and as many of each kSide columns of its results (FlashAttention, Dao et al. 2022).
#include "training/io.glsl"
#include "lib/arithmetic.glsl"

const uint kSide = kAttendedSide;
const uint kPitch = kSide + 1u;  // the padding keeps columns in different banks
const uint kInvocations = 128u, kOwn = 4u, kBeside = 2u, kBesides = kSide / kBeside;
const uint kParts = kAttendedColumns / kSide;  // parts of kSide columns
const uint kScores = kOwn * kBeside, kResults = kParts * kScores;
layout(local_size_x = kInvocations) in;

shared float left_tile[kSide * kPitch], right_tile[kSide * kPitch], weights[kSide * kPitch];

uint own_row(uint i) {
    return gl_LocalInvocationID.x / kBesides * kOwn + i;
}
uint own_column(uint j) {
    return gl_LocalInvocationID.x % kBesides + kBesides * j;
}
uint weight_at(uint i, uint j) {
    return own_row(i) * kPitch + own_column(j);
}

// Loads kSide rows and columns of a head, which begins at `begin`; beyond its ends all is zero.
#define LOAD_TILE(tile, from, begin, stride, first_row, first_column)                    \
    for (uint e = gl_LocalInvocationID.x; e < kSide * kSide; e += kInvocations) {        \
        const uint r = e / kSide, c = e % kSide;                                         \
        float value = 0.0;                                                               \
        if ((first_row) + r < p.rows && (first_column) + c < p.head_dim)                 \
            value = from[(begin) + ((first_row) + r) * (stride) + (first_column) + c];   \
        tile[r * kPitch + c] = value;                                                    \
    }

// scores = the dot products of kSide rows of a head of `a` and kSide rows of a head of `b`.
#define DOT_PRODUCTS(scores, a, a_begin, a_stride, a_row, b, b_begin, b_stride, b_row)   \
    [[unroll]] for (uint i = 0u; i < kScores; ++i) scores[i] = 0.0;                      \
    for (uint first = 0u; first < p.head_dim; first += kSide) {                          \
        barrier();                                                                       \
        LOAD_TILE(left_tile, a, a_begin, a_stride, a_row, first)                         \
        LOAD_TILE(right_tile, b, b_begin, b_stride, b_row, first)                        \
        barrier();                                                                       \
        for (uint d = 0u; d < kSide; ++d)                                           \
            [[unroll]] for (uint j = 0u; j < kBeside; ++j) {                             \
                const float right = right_tile[own_column(j) * kPitch + d];              \
                [[unroll]] for (uint i = 0u; i < kOwn; ++i)                              \
                    scores[i * kBeside + j] += left_tile[own_row(i) * kPitch + d] * right; \
            }                                                                            \
    }

// results += weights * kSide rows of a head of `b`, in columns from first_column on. It waits until
// all weights are there.
#define ADD_WEIGHTED(results, b, begin, stride, first_row, first_column)                 \
    [[unroll]] for (uint part = 0u; part < kParts; ++part) {                             \
        const uint column = (first_column) + part * kSide;                               \
        if (column >= p.head_dim) continue;                                              \
        barrier();                                                                       \
        LOAD_TILE(right_tile, b, begin, stride, first_row, column)                       \
        barrier();                                                                       \
        for (uint k = 0u; k < kSide; ++k)                                           \
            [[unroll]] for (uint j = 0u; j < kBeside; ++j) {                             \
                const float right = right_tile[k * kPitch + own_column(j)];              \
                [[unroll]] for (uint i = 0u; i < kOwn; ++i)                              \
                    results[part * kScores + i * kBeside + j] +=                         \
                        weights[own_row(i) * kPitch + k] * right;                        \
            }                                                                            \
    }

// Calls PUT(own row i, column of the head, result) for all results inside of the head.
#define EACH_RESULT(results, first_row, first_column, PUT)                               \
    [[unroll]] for (uint part = 0u; part < kParts; ++part)                               \
        [[unroll]] for (uint i = 0u; i < kOwn; ++i)                                      \
            [[unroll]] for (uint j = 0u; j < kBeside; ++j) {                             \
                const uint column = (first_column) + part * kSide + own_column(j);       \
                if ((first_row) + own_row(i) < p.rows && column < p.head_dim)            \
                    PUT(i, column, results[part * kScores + i * kBeside + j]);           \
            }
