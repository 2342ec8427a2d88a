// The parameters and results of the vector kernels, as plain structs, and the table of one
// instruction set. Kernel sources are compiled once per instruction set; they include only headers
// like this one, so that no shared inline function can be emitted with instructions that the CPU
// may lack.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "backend/activation.h"
#include "core/dtype.h"

namespace aerie::cpu {

enum class Float : uint8_t { F32, F16, BF16 };
struct Half {
    uint16_t bits;
};
struct Brain {
    uint16_t bits;
};

// Weights are stored in strips of 16 rows, the last one filled up with zeros: a vector lane is a
// row. A strip of floats is [inner][row]; strip_layout.h describes quantised ones.
constexpr int kStripRows = 16;
constexpr int kPanelElements = 32;
constexpr int kStripsTogether = 4;  // strips that kernels read side by side if columns are few

constexpr int kMaxColumns = 128;  // columns per call of a matmul

// out [columns, rows] (+)= ... + bias [rows]
struct MatmulOutput {
    const float* bias;  // may be null
    float* out;
    size_t out_stride;
    bool accumulate;
    const int32_t* places;  // row of `out` of each column; null: column c is row c

    float* column(int c) const { return out + size_t(places ? places[c] : c) * out_stride; }
};

// x [columns, inner] * weight [rows, inner]^T
struct MatmulTask {
    const float* x;
    size_t x_stride;
    int columns;
    const void* weight;  // the strip of the first row
    Float type;
    int rows;
    int inner;
    MatmulOutput output;
};

// The size of a group of a column of activations, packed for quantised dot products. Each
// instruction set has a layout of its own.
constexpr size_t kPackedGroupBytes = 44;
constexpr int kPackedStep = 4;  // the room for packed columns is a multiple of this

struct PackTask {
    const void* x;    // BlockI8G32 [columns, inner / 32]
    size_t x_stride;  // bytes
    int columns;
    int inner;
    DType type;  // type of the weight
    // [padded columns][inner / 32] of kPackedGroupBytes, 64-byte aligned; columns are padded to
    // kPackedStep.
    void* packed;
};

// The same product, of packed columns and a quantised weight. Sums are ordered as core/quant.h
// says.
struct QuantMatmulTask {
    const void* packed;
    int columns;
    const void* weight;  // the strip of the first row
    DType type;
    int rows;
    int inner;
    MatmulOutput output;
};

// Where the tokens that a row attends to lie in the cache. The fields are those of Row
// (core/rows.h).
struct History {
    int position;
    int first;  // first position that the row attends to
    int prefix;
    const int32_t* path;
    int slot;              // -1: a padding row, whose output becomes 0
    const int32_t* pages;  // page table of the row's sequence
};

struct Cache {
    void* k;
    void* v;
    size_t k_stride;  // elements between rows
    size_t v_stride;
    Float type;
};

// Positions of a chunk of attention, which are those of a page of the KV cache.
constexpr int kChunk = 64;

// The results of attention to each chunk by itself, before the chunks are merged.
struct ChunkResults {
    float* values;  // [chunks][queries][head_dim]: P V
    float* max;     // [chunks][queries]: of S
    float* sum;     // [chunks][queries]: of P

    // The floats that the results of so many chunks take.
    static constexpr size_t size(int chunks, int queries, int head_dim) {
        return size_t(chunks) * size_t(queries) * size_t(head_dim + 2);
    }
    static ChunkResults in(float* memory, int chunks, int queries, int head_dim) {
        const size_t count = size_t(chunks) * size_t(queries);
        float* const max = memory + count * size_t(head_dim);
        return {memory, max, max + count};
    }
};

// Some rows and one kv head; the query heads of its group are contiguous in q and out. A query of
// the task is a query head of one of its rows.
struct AttentionTask {
    const float* q;  // queries of the first row
    float* out;
    size_t q_stride;
    size_t out_stride;
    int rows;
    int group;
    int head_dim;
    float scale;
    Cache cache;               // from the first element of the kv head
    const History* histories;  // [rows]
    int first_chunk;           // first chunk that any row attends to
    int chunks;
    ChunkResults results;  // unused if one call does all chunks
};
constexpr int kMaxQueries = 128;  // most rows * group of a task

struct RopeTask {
    float* qkv;         // one row; q and k are rotated in place
    const float* rope;  // head_dim / 2 cosines, then as many sines
    int heads;
    int kv_heads;
    int head_dim;
    void* k;  // this row's place in the cache
    void* v;
    Float type;
};

struct ArgMax {
    int id;  // -1: all values are NaN
    float value;
};

struct Kernels {
    void (*convert)(void* to, Float to_type, const void* from, Float from_type, size_t count);
    void (*matmul)(const MatmulTask& task);
    void (*pack_columns)(const PackTask& task, int first, int last);  // columns [first, last)
    void (*matmul_quant)(const QuantMatmulTask& task);
    void (*quantise)(void* to, const float* from, int count);  // as pack_i8g32 does
    // Packs blocks of Q8_0 or Q4_0, as pack_q8_0 and pack_q4_0 do.
    void (*pack_weights)(void* to, DType type, const float* from, int count);
    void (*rms_norm)(float* out, const float* x, const float* weight, int count, float epsilon);
    void (*rope_append)(const RopeTask& task);
    // All chunks of the task.
    void (*attention)(const AttentionTask& task);
    // The chunks [first, last) of the task by themselves, into its results; and what attention()
    // would write, from the results of all chunks.
    void (*attend_to_chunks)(const AttentionTask& task, int first, int last);
    void (*merge_chunks)(const AttentionTask& task);
    void (*gated)(float* out, const float* gate, const float* up, int count, Activation activation);
    void (*add)(float* out, const float* a, const float* b, int count);
    // Gumbel noise of tokens [first, first + count); first is a multiple of 64.
    void (*noise)(float* out, uint64_t seed, int position, int first, int count);

    // Rows of logits. NaN is never the best; ties go to the lowest id.
    ArgMax (*argmax)(const float* x, int count);
    // The best of (x - shift) * scale + noise.
    ArgMax (*argmax_noise)(const float* x, const float* noise, float shift, float scale, int count);
    // out = (x - shift) * scale + noise; noise may be null.
    void (*perturb)(float* out, const float* x, const float* noise, float shift, float scale,
                    int count);
    // Sum of exp((x - shift) * scale), NaN and -inf left out.
    double (*exp_sum)(const float* x, float shift, float scale, int count);
    // out = exp((x - shift) * scale); 0 for NaN and -inf.
    void (*exp_all)(float* out, const float* x, float shift, float scale, int count);
    // Ids with low <= x < high, ascending; returns how many.
    int (*ids_between)(int32_t* ids, const float* x, float low, float high, int count);
    // Values below the cut become -inf.
    void (*remove_below)(float* x, float cut, int count);
    // The k best values above -inf with their ids, best first; returns how many there are.
    int (*best)(int32_t* ids, float* values, int k, const float* x, int count);
};

}  // namespace aerie::cpu
