// The ops, with the tensors that each reads and writes. Backend::run checks their shapes (ops.cpp),
// once for all backends; a wrong shape is a bug in aerie and asserts. M is the number of rows of a
// pass.
//
// A new op needs a struct and an entry in the list at the end of this file, a check, a file in each
// backend (and a shader for Vulkan), a reference and a test.
#pragma once

#include <cstdint>
#include <span>

#include "backend/activation.h"
#include "backend/choice.h"
#include "backend/op_list.h"
#include "backend/routing.h"
#include "core/fixed_vector.h"
#include "core/rows.h"
#include "core/tensor.h"

namespace aerie {

class Backend;
class Weight;

// One layer of KV cache. A slot s of sequence q lives in row page_table[q][s / 64] * 64 + s % 64.
struct KvLayer {
    Tensor k;           // [pages * 64, kv_heads * head_dim], F16 or F32, rows aligned to 16 bytes
    Tensor v;           // same shape and type as k
    Tensor page_table;  // I32 [sequences, pages of one sequence]
};

struct AttentionShape {
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;  // a multiple of 16

    float usual_scale() const;  // the scale of Attention in most models: 1 / sqrt(head_dim)
};

enum class Accumulate : bool { no, yes };

// Moves one row of the KV cache to another slot of its sequence.
struct KvMove {
    int32_t sequence = 0;
    int32_t from = 0, to = 0;  // slots
};
constexpr int kKvMoveInts = sizeof(KvMove) / sizeof(int32_t);

// The weights of the matmuls that read an op's output.
using Consumers = FixedVector<const Weight*, 4>;

// out = table row of each row's token.
struct Embed {
    static constexpr const char* kName = "embed";
    Tensor out;  // F32 [M, cols]
    const Weight& table;
    Rows rows;
    void check(const Backend& be) const;
};

// rms_norm, attention, gated, embed_pair and copy write F32 or I8G32 (see activation_type in
// backend.h).
//
// out = x / sqrt(mean(x^2) + epsilon) * weight, per row, with f32 accumulation.
struct RmsNorm {
    static constexpr const char* kName = "rms_norm";
    Tensor out;  // [M, cols]
    Tensor x;
    Tensor weight;  // F32 [1, cols]
    float epsilon;
    // The weights of all matmuls that read `out`, each exactly once and before any other matmul. If
    // given, the backend may keep the result elsewhere or compute it from x in these matmuls, and
    // leave `out` unwritten; x must not change before they have run. Empty: the result is in `out`.
    Consumers consumers = {};
    void check(const Backend& be) const;
};

// out [M, N] (+)= x [M, K] * weight [N, K]^T + bias.
struct Matmul {
    static constexpr const char* kName = "matmul";
    Tensor out;  // F32
    Tensor x;
    const Weight& weight;
    Accumulate accumulate = Accumulate::no;
    Tensor bias = {};  // F32 [1, N]; may be absent
    void check(const Backend& be) const;
};

// RmsNorm of each head of q and of k, in place (Qwen 3).
struct HeadNorm {
    static constexpr const char* kName = "head_norm";
    Tensor qkv;                 // F32 [M, (heads + 2 kv_heads) * head_dim]
    Tensor q_weight, k_weight;  // F32 [1, head_dim]
    AttentionShape shape;
    float epsilon;
    void check(const Backend& be) const;
};

// Rotates q and k in place to each row's position, where element i pairs with i + head_dim / 2, and
// writes k and v to each row's slot.
struct RopeAppend {
    static constexpr const char* kName = "rope_append";
    Tensor qkv;   // F32 [M, (heads + 2 kv_heads) * head_dim]
    Tensor rope;  // F32 [positions, head_dim]: cosines of the head_dim / 2 angles, then their sines
    Rows rows;
    AttentionShape shape;
    KvLayer kv;
    void check(const Backend& be) const;
};

// Matmul that computes q, k and v, then RopeAppend.
struct MatmulRope {
    static constexpr const char* kName = "matmul_rope";
    Tensor qkv;  // F32 [M, (heads + 2 kv_heads) * head_dim]: q; the rest is undefined
    Tensor x;
    const Weight& weight;
    Tensor bias;  // F32 [1, columns of qkv]; may be absent
    Tensor rope;  // this and the following as in RopeAppend
    Rows rows;
    AttentionShape shape;
    KvLayer kv;
    void check(const Backend& be) const;
    void run_parts(Backend& be, Label label) const;
};

// out = softmax(scale * q k) v over each row's history, itself included, in logical order; chunks
// of floor(position / 64). Positions before a row's window have no weight.
struct Attention {
    static constexpr const char* kName = "attention";
    Tensor out;  // [M, heads * head_dim]
    Tensor qkv;  // as RopeAppend leaves it
    Rows rows;
    AttentionShape shape;
    KvLayer kv;
    float scale;
    int window = 0;            // positions that a row attends to, itself included; 0: all
    Consumers consumers = {};  // as in RmsNorm
    void check(const Backend& be) const;
};

// out = activation(gate) * up.
struct Gated {
    static constexpr const char* kName = "gated";
    Tensor out;      // [M, I]
    Tensor gate_up;  // F32 [M, 2 I]
    Activation activation;
    void check(const Backend& be) const;
};

// Gated of x [M, K] * weight [2 I, K]^T + bias.
struct MatmulGated {
    static constexpr const char* kName = "matmul_gated";
    Tensor out;      // [M, I]
    Tensor gate_up;  // F32 [M, 2 I]: scratch, undefined afterwards
    Tensor x;
    const Weight& weight;
    Activation activation;
    Tensor bias = {};          // F32 [1, 2 I]; may be absent
    Consumers consumers = {};  // as in RmsNorm
    void check(const Backend& be) const;
    void run_parts(Backend& be, Label label) const;
};

struct Add {
    static constexpr const char* kName = "add";
    Tensor out, a, b;  // F32 [M, cols]
    void check(const Backend& be) const;
};

struct Copy {
    static constexpr const char* kName = "copy";
    Tensor out;
    Tensor x;  // F32 [M, cols]
    void check(const Backend& be) const;
};

// out row i = x row index[i].
struct GatherRows {
    static constexpr const char* kName = "gather_rows";
    Tensor out;  // F32 [n, cols]
    Tensor x;
    Tensor index;  // I32 [1, n]
    void check(const Backend& be) const;
};

// The input of an EAGLE head (EAGLE, section 3.1), the embedding of a row's token beside a feature:
// out row i = [table row of token i, features row index[i]].
struct EmbedPair {
    static constexpr const char* kName = "embed_pair";
    Tensor out;      // F32 or I8G32 [M, 2 cols]
    Tensor scratch;  // F32 [M, 2 cols]: scratch, used if `out` is not F32
    const Weight& table;
    Rows rows;
    Tensor features;    // F32 [n, cols]
    Tensor index = {};  // I32 [1, M]; absent: row i has feature i
    void check(const Backend& be) const;
    void run_parts(Backend& be, Label label) const;
};

// Moves rows in all layers, with the effect of one move after another. The moves of a sequence
// ascend in `from` and in `to`, and none moves a row up.
struct KvCompact {
    static constexpr const char* kName = "kv_compact";
    std::span<const KvLayer> layers;  // all of the same shape and page table
    Tensor moves;                     // I32 [n, kKvMoveInts]
    void check(const Backend& be) const;
};

// Gumbel noise (core/rng.h) for each of P positions.
struct Noise {
    static constexpr const char* kName = "noise";
    Tensor out;  // F32 [P, vocab]
    uint64_t seed;
    Tensor positions;  // I32 [1, P]
    void check(const Backend& be) const;
};

// The k best candidates of each row. Without noise, or at temperature 0, they are ranked by logits
// after penalties and mask, and log_probs = log_softmax over the whole row. With noise, they are
// ranked by z = processed logit / temperature + noise, and log_probs = log_softmax(z / softness)
// over the max(k, 10) best, with the softness of the row in choice.rules.
struct TopK {
    static constexpr const char* kName = "top_k";
    Tensor ids;         // out: I32 [rows, k], target ids, best first, ties to the lowest draft id
    Tensor log_probs;   // out: F32 [rows, k]
    Choice choice;      // with noise: the rules of the target's tokens
    Tensor noise = {};  // F32 [1, target vocab], the same for all rows; absent: rank by logit
    void check(const Backend& be) const;
};

// One level of EAGLE-2's expansion. The F rows that were just run have the candidates ids[F, k].
// Appends all F * k of them to the table at table_offset (by frontier rank, then child rank), with
// value = log_prob, plus the parent's value if sum_values. Then selects the next frontier, which is
// the `width` best of this level (value descending, index ascending) or the given `selection`, and
// writes its rows.
struct Beam {
    static constexpr const char* kName = "beam";
    Tensor ids, log_probs;  // [F, k]
    Rows rows;              // the F rows of this level
    Tensor frontier;        // in: I32 [1, >= F] table index of each row (unused if from_root)
                            // out: table index of each next row
    Tensor table;           // I32 [capacity, kCandidateInts]
    Tensor selection;       // optional, I32 [1, width]: candidate numbers within this level
    Tensor parent_row;      // out: I32 [1, width], the row in `rows` that each next row extends
    Rows next;              // out: [width] rows, not in the memory of `rows`; 0 on the last level
    int table_offset = 0;
    int next_slot = 0;       // next row i writes slot prefix + next_slot + i
    bool from_root = false;  // rows holds only the last committed row: next rows extend the prefix
    bool sum_values = true;
    void check(const Backend& be) const;
};

// ids = argmax of processed logits / temperature + noise. Ties go to the lowest id, NaN orders
// below -inf, and a row of NaN gives -1. For a drafted row, penalties also count the tokens on its
// own path below the root; the rows of a tree must be in the order of their slots.
struct Sample {
    static constexpr const char* kName = "sample";
    Tensor ids;  // out: I32 [1, M]
    Choice choice;
    Rows rows;          // row r uses noise row choice.noise + depth (position - prefix)
    Tensor noise = {};  // F32 [rows of noise, vocab]; absent: no noise is added
    void check(const Backend& be) const;
};

// Routes each row to the k experts with the best logits: ties go to the lowest id, NaN orders below
// -inf. weights = softmax over all logits, for the chosen experts; if normalised, divided by their
// sum.
struct Route {
    static constexpr const char* kName = "route";
    Routing routing;  // out
    Tensor logits;    // F32 [M, experts]
    bool normalised = false;
    void check(const Backend& be) const;
};

// Computes one row of `out` for each place: its row of x times expert^T, side by side for all
// stacks of the weight. The bits are those of Matmul with the expert's rows as a weight of their
// own.
struct ExpertMatmul {
    static constexpr const char* kName = "expert_matmul";
    Tensor out;            // F32 [M * k, stacks * rows of an expert]
    Tensor x;              // [M, K], one row for each row, or [M * k, K], one for each place
    const Weight& weight;  // uploaded for WeightUse::experts
    Routing routing;
    void check(const Backend& be) const;
};

// out (+)= for each row, the sum of its places times their weights, in the order of its choices.
struct ExpertSum {
    static constexpr const char* kName = "expert_sum";
    Tensor out;      // F32 [M, cols]
    Tensor x;        // F32 [M * k, cols]
    Tensor weights;  // F32 [M, k]
    Accumulate accumulate;
    void check(const Backend& be) const;
};

using Ops = OpList<Embed, RmsNorm, Matmul, HeadNorm, RopeAppend, MatmulRope, Attention, Gated,
                   MatmulGated, Add, Copy, GatherRows, EmbedPair, KvCompact, Noise, TopK, Beam,
                   Sample, Route, ExpertMatmul, ExpertSum>;

// An op that does the work of several others, with the same bits.
template <class Op>
concept Fused = requires(const Op& op, Backend& be, Label label) {
    op.run_parts(be, label);
};

}  // namespace aerie
