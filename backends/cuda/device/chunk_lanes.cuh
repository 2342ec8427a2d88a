// A chunk of attention by virtual lanes, in the order of operations that every device has: for some
// pairs of a row and a query head the maximum of the scores S, the sum of P = exp(S - maximum) and
// O = P V. Slabs of K, then of V, come to shared memory; while one is used the next is copied.
#pragma once

#include "cuda/device/chunk_block.cuh"

namespace aerie::cuda {

struct LanesSpace : ChunkSpace {
    SharedArray<float4, kMaxPairs * kMaxSlabElements / 4> queries;  // Q: a slab's elements
    SharedArray<float, kChunk * kOwn> scores;                       // S, then P, by key and pair
    SharedArray<ChunkWeight, kOwn> weights;                         // by pair, newest chunk
};

// Quads of K are swizzled so that eight lanes, which load two quads of each of 4 keys at a time,
// meet no bank conflict. V needs no swizzle, since a warp reads one row at a time.
constexpr int kTurned = 4;  // positions after which the swizzle repeats
__device__ inline int key_place(int slot, int position, int quad) {
    return slot * kSlabWords + position * kSlabQuads + (quad ^ position % kTurned * 2);
}
__device__ inline int value_place(int slot, int position, int quad) {
    return slot * kSlabWords + position * kSlabQuads + quad;
}

// Loads elements [8 * eighth, 8 * eighth + 8) of a key.
template <class T>
__device__ void take_half(float (&to)[kHalf], ChunkSpace& space, int slot, int position,
                          int eighth) {
    if constexpr (sizeof(T) == 2) {
        const uint4 quad = space.slabs[key_place(slot, position, eighth)];
        const unsigned words[] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
        for (int i = 0; i < kHalf; ++i) to[i] = from_f16(uint16_t(words[i / 2] >> i % 2 * 16));
    } else {
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            const uint4 quad = space.slabs[key_place(slot, position, eighth * 2 + j)];
            const unsigned words[] = {quad.x, quad.y, quad.z, quad.w};
#pragma unroll
            for (int i = 0; i < 4; ++i) to[j * 4 + i] = __uint_as_float(words[i]);
        }
    }
}

__device__ inline float value_of(uint16_t bits) {
    return from_f16(bits);
}
__device__ inline float value_of(float value) {
    return value;
}

// Reduces 16 virtual lanes by the fixed tree. Two neighbouring threads have 8 lanes each, of
// `pairs` pairs: the first thread gets the sums of the first half of the pairs, the second those of
// the other half. Both get the sum of a single pair.
template <int pairs, int thread_pairs>
__device__ inline void sums_of_both(float (&sums)[thread_pairs],
                                    const float (&lanes)[pairs][kHalf]) {
    const int half = int(threadIdx.x) % 2;
#pragma unroll
    for (int j = 0; j < thread_pairs; ++j) {
        float both[kHalf];
#pragma unroll
        for (int i = 0; i < kHalf; ++i) {
            const float first = lanes[j][i], second = lanes[pairs - thread_pairs + j][i];
            both[i] =
                (half ? second : first) + __shfl_xor_sync(kAllLanes, half ? first : second, 1);
        }
        sums[j] = ((both[0] + both[4]) + (both[2] + both[6])) +
                  ((both[1] + both[5]) + (both[3] + both[7]));
    }
}

// Attention of a block by virtual lanes. If a head takes one slab, Q is loaded once for all chunks.
template <class T, bool one_slab>
class ChunkLanes : ChunkBlock<T, one_slab> {
    template <int together>
    static constexpr int kThreadPairs = (together + 1) / 2;  // pairs of a thread in the softmax
    using Block = ChunkBlock<T, one_slab>;
    using Block::adds_, Block::copied_, Block::dim_, Block::now_, Block::pair_of, Block::pairs_;
    using Block::quad_, Block::space_, Block::task_, Block::thread_;
    static_assert(Block::kCopied % kTurned == 0);

  public:
    __device__ ChunkLanes(LanesSpace& space, const AttentionTask& task, bool adds)
        : Block(space, task, adds), shared_(space) {}

    // Blocks along z divide the work items among themselves: the shared chunks, then each row's
    // own.
    __device__ void run() {
        const auto chunks = this->name_pairs();
        if (thread_ < pairs_) space_.sums[thread_] = make_float2(-infinity(), 0);
        for (int i = thread_; i < pairs_ * (dim_ + kOutputGap); i += kChunkThreads) space_.o[i] = 0;
        if constexpr (one_slab) load_queries({0, pairs_}, 0);
        const int together = chunks.shared_end - chunks.all.begin;
        const int row_bits = 31 - __clz(task_.own_rows);
        // The fork is taken as one item only where that shortens what the busiest block has to do.
        const int deep = int(gridDim.z);
        const int alone = together + ((chunks.all.end - chunks.shared_end) << row_bits);
        const int forked = together + pairs_ / kOwn;
        const bool forks =
            has_tails(chunks.fork, chunks.end) && tiles_of(forked, deep) < tiles_of(alone, deep);
        const int items = forks ? forked : alone;
        for (int item = int(blockIdx.z); item < items; item += deep) {
            const int single = item - together, of = single >> row_bits;
            if constexpr (one_slab)
                if (forks && single >= 0) {
                    attend_fork(chunks.fork, single * kOwn);
                    continue;
                }
            Range pairs{0, pairs_};
            if (single >= 0) {
                const int first = (single - (of << row_bits)) * task_.own_heads;
                pairs = {first, first + task_.own_heads};
            }
            name_cached(single < 0 ? chunks.all.begin + item : chunks.shared_end + of, pairs,
                        single < 0);
            if (now_.all.is_empty()) continue;
            __syncthreads();
            pairs.end - pairs.begin == 1 ? attend<1>(pairs) : attend<kOwn>(pairs);
        }
    }

  private:
    // Whether rows part within the last chunk, at `fork`, and the positions of each row from there
    // on, its tail, fit into a slab beside the tails of the rows that are computed with it.
    __device__ bool has_tails(int fork, int end) const {
        return one_slab && pairs_ % kOwn == 0 && kOwn % task_.own_heads == 0 &&
               task_.own_heads < kOwn && fork % kChunk > 0 && fork < end &&
               tiles_of(end, kChunk) == tiles_of(fork, kChunk) && end - fork <= 1 << tail_bits();
    }
    __device__ int tail_bits() const { return 31 - __clz(kChunk / kOwn * task_.own_heads); }

    // Makes `chunk` the current one, for one row's pairs or, if it is shared, for all; lists its
    // cache rows.
    __device__ void name_cached(int chunk, Range pairs, bool is_alike) {
        now_ = this->alike_chunk(chunk, is_alike);
        const Pair pair = pair_of(pairs, 0);
        if (!is_alike) now_.all = pair.within(now_.before);
        if (now_.all.is_empty()) return;
        __syncthreads();  // all have read the item before
        if (thread_ >= kChunk) return;
        const int position = now_.before + min(max(thread_, now_.all.begin), now_.all.end - 1);
        space_.cached[thread_] =
            is_alike ? now_.row(thread_)
                     : unsigned(task_.cache.row(pair.sequence, this->slot_of(pair, position)));
    }

    // Computes the last chunk for kOwn pairs from `first` on. Its positions before `fork` are
    // shared, the others are a tail of each row. A pair has the same operations as in attend().
    __device__ void attend_fork(int fork, int first) {
        const Range now{first, first + kOwn};
        const int span_bits = tail_bits();
        now_.before = fork / kChunk * kChunk;
        const int shared = fork - now_.before;
        const Range seen = this->seen_of(now);
        __syncthreads();  // all have read the item before
        {
            // Threads below kChunk list the cache rows of the shared positions, the others those of
            // tails.
            const int tail = thread_ - kChunk, of = tail >> span_bits;
            int slot = now_.before + min(thread_, shared - 1);
            // Positions beyond a row's end are a copy of its last one, or of the last shared one.
            if (tail >= 0) {
                const Pair pair = space_.pairs[first + of * task_.own_heads];
                const int position = min(fork + tail - (of << span_bits), pair.end - 1);
                slot = position < fork ? fork - 1 : this->slot_of(pair, position);
            }
            space_.cached[thread_] = unsigned(task_.cache.row(this->sequence_, slot));
        }
        __syncthreads();
        // 1. K of the shared positions and of the tails to shared memory.
        copy_keys(0, 0);
        copy_keys(0, 1, kChunk);
        commit_copies();
        wait_for_copies<0>();
        __syncthreads();
        Range sees[kOwn];
#pragma unroll
        for (int j = 0; j < kOwn; ++j) sees[j] = pair_of(now, j).within(now_.before);
        // 2. Sums of Q K^T; then V of both is copied to the place of K.
        add_fork_products(now, shared, span_bits);
        __syncthreads();
        copy_values(0, 1);
        copy_values(0, 0, kChunk);
        commit_copies();
        commit_copies();  // empty: arrive() leaves one group pending
        // 3. P = exp(S - maximum).
        float scores[kThreadPairs<kOwn>];
#pragma unroll
        for (int i = 0; i < kThreadPairs<kOwn>; ++i) {
            const int j = half_ * kThreadPairs<kOwn> + i;
            scores[i] = pair_of(now, j).within(now_.before).has(key_)
                            ? float(shared_.scores[key_ * kOwn + j])
                            : 0.0f;
        }
        softmax<kOwn>(scores, now, sees);
        // 4. O = P V: the shared positions, then the tail of each row.
        float mixed[kOwn] = {};
        if (thread_ < dim_) {
            now_.all = {seen.begin, min(seen.end, shared)};
            Range before[kOwn];
#pragma unroll
            for (int j = 0; j < kOwn; ++j) before[j] = {sees[j].begin, min(sees[j].end, shared)};
            mix<kOwn>(mixed, before, 0);
#pragma unroll 1
            for (int i = max(shared, seen.begin); i < seen.end; ++i) {
                const float4 four = shared_.scores.template joined<float4>(i * kOwn);
                const float weights[] = {four.x, four.y, four.z, four.w};
                float values[kOwn];
#pragma unroll
                for (int j = 0; j < kOwn; ++j)
                    values[j] = value(0, (j / task_.own_heads << span_bits) + i - shared);
#pragma unroll
                for (int j = 0; j < kOwn; ++j) {
                    const float more = mixed[j] + weights[j] * values[j];
                    mixed[j] = sees[j].has(i) ? more : mixed[j];
                }
            }
        }
        if (adds_) __syncthreads();  // the weights have been stored
        if (thread_ < dim_) keep<kOwn>(mixed, now, sees, thread_);
    }

    // S = Q K^T: of the shared positions for all pairs, of each tail for the pairs of its row.
    __device__ void add_fork_products(Range now, int shared, int span_bits) {
        {
            float lanes[kOwn][kHalf] = {}, sums[kThreadPairs<kOwn>];
            add_products<kOwn>(lanes, now, 0, 0, 0);
            sums_of_both(sums, lanes);
#pragma unroll
            for (int i = 0; i < kThreadPairs<kOwn>; ++i)
                if (key_ < shared)
                    shared_.scores[key_ * kOwn + half_ * kThreadPairs<kOwn> + i] = sums[i];
        }
        const int first = (key_ >> span_bits) * task_.own_heads;
        const int position = shared + (key_ & ((1 << span_bits) - 1));
        for (int j = first; j < first + task_.own_heads; ++j) {
            float lanes[1][kHalf] = {}, sum[1];
            add_products<1>(lanes, {now.begin + j, now.begin + j + 1}, 0, 0, 1);
            sums_of_both(sum, lanes);
            if (position < kChunk && half_ == 0) shared_.scores[position * kOwn + j] = sum[0];
        }
    }

    // Computes the current chunk for these pairs, `together` at a time.
    template <int together>
    __device__ void attend(Range pairs) {
#pragma unroll(one_slab ? 2 : 1)
        for (int i = 0; i < 2; ++i) load(i);
#pragma unroll 1
        for (int first = pairs.begin; first < pairs.end; first += together) {
            const Range now{first, min(first + together, pairs.end)};
            Range sees[together];  // pairs beyond the last repeat it, and are not stored
#pragma unroll
            for (int j = 0; j < together; ++j) sees[j] = pair_of(now, j).within(now_.before);
            // 1. S = Q K^T, slab by slab.
            float lanes[together][kHalf] = {};
#pragma unroll 1
            for (int slab = 0; slab < slabs(); ++slab) {
                if (!one_slab && (slab > 0 || first == pairs.begin)) load_queries(pairs, slab);
                arrive();
                if (now_.all.has(key_))
                    add_products<together>(lanes, now, one_slab ? 0 : pairs.begin, slab, slab % 2);
                leave(slab);
            }
            // 2. P = exp(S - maximum).
            float scores[kThreadPairs<together>];
            sums_of_both(scores, lanes);
            softmax<together>(scores, now, sees);
#pragma unroll 1
            for (int slab = 0; slab < slabs(); ++slab) {
                // 3. O = P V of the slab's elements.
                if (slab > 0) arrive();
                float mixed[together] = {};
                const int element = slab * kSlabElements<T> + thread_;
                const bool has_element = thread_ < kSlabElements<T> && element < dim_;
                if (has_element) mix<together>(mixed, sees, slab);
                if (adds_) __syncthreads();  // the weights have been stored
                if (has_element) keep<together>(mixed, now, sees, element);
                leave(slabs() + slab);
            }
        }
    }

    __device__ int slabs() const {
        return one_slab ? 1 : tiles_of(dim_, kSlabElements<T>);
    }

    // Starts load number i of the chunk: slabs of K, then slabs of V.
    __device__ void load(int i) {
        if (i < slabs())
            copy_keys(i, i % 2);
        else if (i < 2 * slabs())
            copy_values(i - slabs(), i % 2);
        commit_copies();  // also if nothing was copied: wait_for_copies counts groups
    }
    // Starts copies to slab `slot` in shared memory, of the rows that space_.cached lists from
    // index `cached` on.
    __device__ void copy_keys(int slab, int slot, int cached = 0) {
        Block::copy_keys(slab, key_place(slot, copied_, quad_), this->named(cached));
    }
    __device__ void copy_values(int slab, int slot, int cached = 0) {
        Block::copy_values(slab, value_place(slot, copied_, quad_), this->named(cached));
    }
    // Waits for the older of the two loads that are under way, for all threads.
    __device__ void arrive() {
        wait_for_copies<1>();
        __syncthreads();
    }
    // Load number i has been used: its slab in shared memory goes to load i + 2.
    __device__ void leave(int i) {
        if (one_slab) return commit_copies();
        if (i + 2 < 2 * slabs()) __syncthreads();
        load(i + 2);
    }

    __device__ void load_queries(Range pairs, int slab) {
        const int element = slab * kSlabElements<T>, four = thread_ % 32;
        if (four * 4 >= min(dim_ - element, kSlabElements<T>)) return;
#pragma unroll 4
        for (int i = thread_ / 32; i < pairs.end - pairs.begin; i += kChunkThreads / 32) {
            const Pair pair = space_.pairs[pairs.begin + i];
            const float* query = task_.qkv.data + pair.query + element + four * 4;
            shared_.queries[i * kQueryFours + four] =
                make_float4(query[0], query[1], query[2], query[3]);
        }
    }

    // Adds the products of a slab's elements of Q with this thread's key in slab `slot`, lane by
    // lane.
    template <int together>
    __device__ void add_products(float (&lanes)[together][kHalf], Range now, int first, int slab,
                                 int slot) {
        int queries[together];
#pragma unroll
        for (int j = 0; j < together; ++j)
            queries[j] = (min(now.begin + j, now.end - 1) - first) * kQueryFours + half_ * 2;
        const int count = min(dim_ - slab * kSlabElements<T>, kSlabElements<T>) / kLanes;
        const auto add = [&](int m) {
            float keys[kHalf];
            take_half<T>(keys, space_, slot, key_, m * 2 + half_);
#pragma unroll
            for (int j = 0; j < together; ++j) {
                const float4 a = shared_.queries[queries[j] + m * 4],
                             b = shared_.queries[queries[j] + m * 4 + 1];
                const float query[] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
                for (int i = 0; i < kHalf; ++i) lanes[j][i] = lanes[j][i] + query[i] * keys[i];
            }
        };
        constexpr int kTogether = together == 1 ? 4 : 2;
        int m = 0;
#pragma unroll 1
        for (; m + kTogether <= count; m += kTogether)
#pragma unroll
            for (int i = 0; i < kTogether; ++i) add(m + i);
#pragma unroll 1
        for (; m < count; ++m) add(m);
    }

    // Softmax: sums of products become scores, and these P = exp(score - maximum). The two threads
    // of a key have half of the pairs each; if there is one pair, both have it.
    template <int together>
    __device__ void softmax(float (&scores)[kThreadPairs<together>], Range now,
                            const Range (&sees)[together]) {
        const int first = together == 1 ? 0 : half_ * kThreadPairs<together>, warp = thread_ / 32;
#pragma unroll
        for (int i = 0; i < kThreadPairs<together>; ++i) {
            const bool sees_it =
                (half_ && together > 1 ? sees[together - kThreadPairs<together> + i] : sees[i])
                    .has(key_);
            scores[i] = (sees_it ? scores[i] : -infinity()) * task_.scale;
            float largest = larger(scores[i], -infinity());
#pragma unroll
            for (int distance = 16; distance > 1; distance /= 2)
                largest = larger(__shfl_xor_sync(kAllLanes, largest, distance), largest);
            if (thread_ % 32 == (together > 1 ? half_ : 0))
                space_.largest[(first + i) * kChunkWarps + warp] = largest;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kThreadPairs<together>; ++i) {
            const float weight = exp_of(scores[i] - space_.largest_of(first + i));
            if (together > 1 || half_ == 0) shared_.scores[key_ * together + first + i] = weight;
        }
        arrive();  // V has arrived as well
        if (warp < together && keeps(now, pair_of(now, warp).within(now_.before), warp))
            keep_sum<together>(now, warp);
    }

    // Sums P of a pair, by one warp (both halves compute the same), and merges or stores the sum.
    template <int together>
    __device__ void keep_sum(Range now, int j) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < kChunk; k += kLanes)
            sum = sum + shared_.scores[(k + thread_ % kLanes) * together + j];
        sum = sum_of_lanes(sum);
        if (thread_ % 32 != 0) return;
        const float largest = space_.largest_of(j);
        if (adds_) {
            const float2 before = space_.sums[now.begin + j];
            const float largest_now = larger(largest, before.x);
            const ChunkWeight chunk_weight(before.x, largest, largest_now);
            space_.sums[now.begin + j] = make_float2(largest_now, chunk_weight.add(before.y, sum));
            shared_.weights[j] = chunk_weight;
        } else {
            const unsigned place = pair_of(now, j).place_of(now_.before);
            task_.partials.max[place] = largest;
            task_.partials.sum[place] = sum;
        }
    }

    // O of this thread's element: the sum of p_i v_i in ascending order of positions.
    template <int together>
    __device__ void mix(float (&mixed)[together], const Range (&sees)[together], int slab) {
        constexpr int kTogether = kOwn / together;  // positions for which P is loaded at once
        const int slot = (slabs() + slab) % 2;
        Range all_see = now_.all;
#pragma unroll
        for (int j = 0; j < together; ++j)
            all_see = {max(all_see.begin, sees[j].begin), min(all_see.end, sees[j].end)};
        const auto add_seen = [&](int i) {
            const float v = value(slot, i);
#pragma unroll
            for (int j = 0; j < together; ++j)
                if (sees[j].has(i)) mixed[j] = mixed[j] + shared_.scores[i * together + j] * v;
        };
        int i = now_.all.begin;
#pragma unroll 1
        for (; i < min(tiles_of(all_see.begin, kTogether) * kTogether, now_.all.end); ++i)
            add_seen(i);
        constexpr int kAtOnce = 8;
#pragma unroll 1
        for (; i + kAtOnce <= all_see.end; i += kAtOnce)
#pragma unroll
            for (int more = 0; more < kAtOnce; more += kTogether) {
                const float4 four = shared_.scores.template joined<float4>((i + more) * together);
                const float weights[] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int w = 0; w < kOwn; ++w)
                    mixed[w % together] =
                        mixed[w % together] + weights[w] * value(slot, i + more + w / together);
            }
#pragma unroll 1
        for (; i < now_.all.end; ++i) add_seen(i);
    }
    // V of this thread's element.
    __device__ float value(int slot, int position) {
        return value_of(space_.slabs.template part<T>(
            value_place(slot, position, thread_ / kQuadElements<T>), thread_ % kQuadElements<T>));
    }
    template <int together>
    __device__ void keep(const float (&mixed)[together], Range now, const Range (&sees)[together],
                         int element) {
#pragma unroll
        for (int j = 0; j < together; ++j) {
            if (!keeps(now, sees[j], j)) continue;
            if (adds_) {
                const int place = ChunkSpace::o_place(now.begin + j, element, dim_);
                const ChunkWeight chunk_weight = shared_.weights[j];
                space_.o[place] = chunk_weight.add(space_.o[place], mixed[j]);
            } else {
                const unsigned place = pair_of(now, j).place_of(now_.before);
                task_.partials.o[size_t(place) * unsigned(dim_) + unsigned(element)] = mixed[j];
            }
        }
    }

    __device__ static bool keeps(Range now, Range sees, int j) {
        return now.begin + j < now.end && !sees.is_empty();
    }

    static constexpr int kQueryFours = kMaxSlabElements / 4;

    LanesSpace& shared_;
    const int key_ = thread_ / 2, half_ = thread_ % 2;
};

}  // namespace aerie::cuda
