// The ops as src calls them: shapes are checked here, once, for every backend. A violated shape is
// our own bug and asserts; nothing here throws.
#pragma once

#include "backend/backend.h"

namespace aerie {

// out [M, cols] = table row of each row's token.
void embed(Backend& be, Tensor out, const Weight& table, Rows rows);

// rms_norm, attention, swiglu and copy write F32 or I8G32 (see activation_type in backend.h).
//
// out = x / sqrt(mean(x^2) + epsilon) * weight, per row; weight F32 [1, cols]; f32 accumulation.
void rms_norm(Backend& be, Tensor out, Tensor x, Tensor weight, float epsilon);
// The same for the next op, a matmul or matmul_swiglu of `out` and `next`: in `out`, or somewhere
// that this op knows of. Nothing else may read `out`.
void rms_norm(Backend& be, Tensor out, Tensor x, Tensor weight, float epsilon, const Weight& next);

// out [M, N] (+)= x [M, K] * w [N, K]^T + bias F32 [1, N].
void matmul(Backend& be, Tensor out, Tensor x, const Weight& w, Accumulate acc = Accumulate::no,
            Tensor bias = {});

// Rotates q and k of qkv [M, (heads + 2 kv_heads) * head_dim] in place to each row's position
// (halves convention: element i pairs with i + head_dim / 2) and writes k, v at each row's slot.
// rope: F32 [positions, head_dim], cosines of the head_dim / 2 angles and then their sines.
void rope_append(Backend& be, Tensor qkv, Tensor rope, Rows rows, const AttentionShape& shape,
                 const KvLayer& kv);

// out [M, heads * head_dim]: softmax(q k / sqrt(head_dim)) v over each row's history, itself
// included, in logical order; chunks of floor(position / 64).
void attention(Backend& be, Tensor out, Tensor qkv, Rows rows, const AttentionShape& shape,
               const KvLayer& kv);

// out [M, I] = silu(gate) * up, gate_up [M, 2 I].
void swiglu(Backend& be, Tensor out, Tensor gate_up);
// swiglu of x [M, K] * w [2 I, K]^T; gate_up [M, 2 I] is scratch: what it holds then is not
// defined.
void matmul_swiglu(Backend& be, Tensor out, Tensor gate_up, Tensor x, const Weight& w);
void add(Backend& be, Tensor out, Tensor a, Tensor b);
void copy(Backend& be, Tensor out, Tensor x);

// What a matmul with `w` reads, [rows, K] of the type that it wants, at the start of `room`, dense
// F32 [>= rows, >= K]: every type of activations fits.
Tensor activation_in(const Backend& be, Tensor room, const Weight& w, int rows);
// x as a matmul with `w` reads it: x itself, or a copy in such a room.
Tensor activation(Backend& be, Tensor x, const Weight& w, Tensor room);

// out row i = x row index[i]; index I32 [1, n].
void gather_rows(Backend& be, Tensor out, Tensor x, Tensor index);

// Slot from_slots[i] -> to_slot + i, as if one after another; from_slots ascending, I32 [1, n],
// from_slots[i] >= to_slot + i.
void kv_compact(Backend& be, const KvLayer& kv, int sequence, Tensor from_slots, int to_slot);

// out F32 [P, vocab]: Gumbel noise of core/rng.h for each of positions I32 [1, P].
void noise(Backend& be, Tensor out, uint64_t seed, Tensor positions);

// The k best candidates of each row. Without noise: of the edited logits, log_probs =
// log_softmax over the whole row. With noise: z = processed logit / temperature + noise, and
// log_probs = log_softmax(z / softness) over the max(k, 10) best.
void top_k(Backend& be, const TopKStep& step);

void beam(Backend& be, const BeamStep& step);

// ids I32 [1, M]: argmax of processed logits / temperature + noise; lowest id on ties, NaN below
// -inf; -1 where every logit is NaN.
void sample(Backend& be, Tensor ids, const SampleStep& step);

// out F32 [M, vocab]: processed probabilities (softmax of the logits where choice changes nothing
// and temperature is 1).
void probs(Backend& be, Tensor out, const Choice& choice);

}  // namespace aerie
