// A chunk of attention by a block of threads: of some pairs of a row and a query head the largest
// score, the sum of exponentials and the mix of values. Keys, then values, come to shared memory
// by slabs; while one is used the next one is under way.
#pragma once

#include "cuda/device/chunk_space.cuh"

namespace aerie::cuda {

// T is what the cache holds.
template <class T>
class ChunkBlock {
  public:
    __device__ ChunkBlock(ChunkSpace& space, const AttentionTask& task)
        : space_(space),
          task_(task),
          dim_(task.shape.head_dim),
          slabs_((dim_ + kSlabElements<T> - 1) / kSlabElements<T>),
          pairs_(task.own_heads * task.own_rows),
          kv_element_(int(blockIdx.x) * task.own_heads / (task.shape.heads / task.shape.kv_heads) *
                      dim_) {}

    // Blocks along z share the chunks: those that lie alike for all rows, then each row's own.
    __device__ void run() {
        if (thread_ < pairs_) space_.pairs[thread_] = pair(thread_);
        __syncthreads();
        Range chunks{1 << 30, 0};
        int alike = 1 << 30, sequence = -1;
        for (int i = 0; i < pairs_; i += task_.own_heads) {
            const Pair its = space_.pairs[i];
            if (its.end == 0) continue;
            chunks = {min(chunks.begin, its.begin / kChunk),
                      max(chunks.end, (its.end + kChunk - 1) / kChunk)};
            if (its.plain < its.end) alike = min(alike, its.plain / kChunk);
            if (sequence >= 0 && its.sequence != sequence) alike = 0;
            sequence = its.sequence;
        }
        if (chunks.is_empty()) return;
        alike = max(min(alike, chunks.end), chunks.begin);
        const int together = alike - chunks.begin;
        const int items = together + (chunks.end - alike) * task_.own_rows;
        for (int item = int(blockIdx.z); item < items; item += int(gridDim.z)) {
            const bool is_alone = item >= together;
            const int single = max(item - together, 0), r = single % task_.own_rows;
            attend_chunk(
                is_alone ? alike + single / task_.own_rows : chunks.begin + item,
                is_alone ? Range{r * task_.own_heads, (r + 1) * task_.own_heads} : Range{0, pairs_},
                is_alone);
        }
    }

  private:
    __device__ int row_of(int i) const {
        return int(blockIdx.y) * task_.own_rows + i / task_.own_heads;
    }
    __device__ const Row& row(int r) const { return *reinterpret_cast<const Row*>(task_.rows[r]); }

    __device__ Pair pair(int i) const {
        const int r = row_of(i), head = int(blockIdx.x) * task_.own_heads + i % task_.own_heads;
        const int last = task_.rows.rows - 1;  // whose query is read beyond it, too
        const size_t query = size_t(min(r, last)) * task_.qkv.stride + size_t(head * dim_);
        if (r > last || row(r).slot < 0) return {0, 0, 0, 0, query, 0};
        const Row& its = row(r);
        const int end = its.position + 1;
        const bool is_plain = its.prefix == its.position && its.slot == its.position;
        return {
            task_.partials.first(its),       end, is_plain ? end : its.prefix, its.sequence, query,
            task_.partials.place(r, head, 0)};
    }

    // A chunk for these pairs; of several rows where it lies in slots of their numbers.
    __device__ void attend_chunk(int chunk, Range pairs, bool is_alone) {
        before_ = chunk * kChunk;
        all_ = {kChunk, 0};
        int sequence = 0;
        for (int i = pairs.begin; i < pairs.end; i += task_.own_heads) {
            const Pair its = space_.pairs[i];
            const Range sees = its.within(before_);
            if (sees.is_empty()) continue;
            all_ = {min(all_.begin, sees.begin), max(all_.end, sees.end)};
            sequence = its.sequence;
        }
        if (all_.is_empty()) return;
        __syncthreads();  // of what the item before has read
        if (all_.has(thread_)) {
            const int position = before_ + thread_;
            const int slot = is_alone ? slot_of(row(row_of(pairs.begin)), position) : position;
            space_.cached[thread_] = int(task_.cache.row(sequence, slot));
        }
        __syncthreads();
        pairs.end - pairs.begin == 1 ? attend<1>(pairs) : attend<kOwn>(pairs);
    }

    __device__ static int slot_of(const Row& row, int position) {
        return position < row.prefix     ? position
               : position < row.position ? row.path[position - row.prefix]
                                         : row.slot;
    }

    // Keys and values of the chunk, for `own` of these pairs at a time.
    template <int own>
    __device__ void attend(Range pairs) {
#pragma unroll 1
        for (int i = 0; i < 2; ++i) load(i);
#pragma unroll 1
        for (int first = pairs.begin; first < pairs.end; first += own) {
            const Range now{first, min(first + own, pairs.end)};
            Range sees[own];  // beyond the last pair: as that one, but nothing is kept
#pragma unroll
            for (int j = 0; j < own; ++j) sees[j] = pair_of(now, j).within(before_);
            float lanes[own][kHalf] = {};
#pragma unroll 1
            for (int slab = 0; slab < slabs_; ++slab) {
                if (slab > 0 || first == pairs.begin) load_queries(pairs, slab);
                arrive();
                add_products<own>(lanes, now, pairs.begin, slab);
                leave(slab);
            }
            soften<own>(lanes, now, sees);
#pragma unroll 1
            for (int slab = 0; slab < slabs_; ++slab) {
                arrive();
                mix<own>(now, sees, slab);
                leave(slabs_ + slab);
            }
        }
    }

    // Load number i: keys, then values.
    __device__ void load(int i) {
        if (i < 2 * slabs_) {
            const bool is_key = i < slabs_;
            const int element = (is_key ? i : i - slabs_) * kSlabElements<T>;
            const int quads = min(dim_ - element, kSlabElements<T>) / kQuadElements<T>;
            const size_t stride = is_key ? task_.cache.k_stride : task_.cache.v_stride;
            const T* data =
                reinterpret_cast<const T*>(is_key ? task_.cache.k_data : task_.cache.v_data) +
                kv_element_ + element;
#pragma unroll 4
            for (int n = 0; n < kSlabWords / kChunkThreads; ++n) {
                const int place = n * kChunkThreads + thread_;
                const int position = place / kSlabQuads, quad = place % kSlabQuads;
                if (!all_.has(position) || quad >= quads) continue;
                const T* from = data + size_t(int(space_.cached[position])) * stride;
                copy_async(space_.slabs, slab_place(i % 2, position, quad),
                           reinterpret_cast<const uint4*>(from) + quad);
            }
        }
        commit_copies();  // also where there is nothing: the count of groups must be right
    }
    // The older one of the loads under way is there, for all threads.
    __device__ void arrive() {
        wait_for_copies<1>();
        __syncthreads();
    }
    // Load number i has been used, and gives its place to the next but one.
    __device__ void leave(int i) {
        if (i + 2 < 2 * slabs_) __syncthreads();
        load(i + 2);
    }

    __device__ void load_queries(Range pairs, int slab) {
        const int element = slab * kSlabElements<T>;
        const int fours = min(dim_ - element, kSlabElements<T>) / 4;
        for (int i = thread_; i < (pairs.end - pairs.begin) * fours; i += kChunkThreads) {
            const int four = i % fours, pair = i / fours;
            const Pair its = space_.pairs[pairs.begin + pair];
            const float* query = task_.qkv.data + its.query + element + four * 4;
            space_.queries[pair * kQueryFours + four] =
                make_float4(query[0], query[1], query[2], query[3]);
        }
    }

    // Adds the products of a slab's elements, lane by lane.
    template <int own>
    __device__ void add_products(float (&lanes)[own][kHalf], Range now, int first, int slab) {
        if (!all_.has(key_)) return;
        int queries[own];
#pragma unroll
        for (int j = 0; j < own; ++j)
            queries[j] = (min(now.begin + j, now.end - 1) - first) * kQueryFours + half_ * 2;
        const int count = min(dim_ - slab * kSlabElements<T>, kSlabElements<T>) / kLanes;
#pragma unroll(own == 1 ? 4 : 2)
        for (int m = 0; m < count; ++m) {
            float keys[kHalf];
            take_half<T>(keys, space_, slab % 2, key_, m * 2 + half_);
#pragma unroll
            for (int j = 0; j < own; ++j) {
                const float4 a = space_.queries[queries[j] + m * 4],
                             b = space_.queries[queries[j] + m * 4 + 1];
                const float query[] = {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
#pragma unroll
                for (int i = 0; i < kHalf; ++i) lanes[j][i] = lanes[j][i] + query[i] * keys[i];
            }
        }
    }

    // Sums become scores, and scores exp(score - maximum).
    template <int own>
    __device__ void soften(const float (&lanes)[own][kHalf], Range now, const Range (&sees)[own]) {
        float scores[own];
        PairValues values = {};
#pragma unroll
        for (int j = 0; j < own; ++j) {
            const float sum = sum_of_both(lanes[j]);
            scores[j] = (sees[j].has(key_) ? sum : -infinity()) * task_.scale;
            values.of[j] = larger(scores[j], -infinity());
            for (int distance = 16; distance > 1; distance /= 2)
                values.of[j] =
                    larger(__shfl_xor_sync(kAllLanes, values.of[j], distance), values.of[j]);
        }
        if (thread_ % 32 == 0) space_.largest[thread_ / 32] = values;
        __syncthreads();
        float largest[own];
#pragma unroll
        for (int j = 0; j < own; ++j) {
            largest[j] = -infinity();
            for (int warp = 0; warp < kChunkThreads / 32; ++warp)
                largest[j] = larger(space_.largest.template part<float>(warp, j), largest[j]);
            values.of[j] = exp_of(scores[j] - largest[j]);
        }
        if (half_ == 0) space_.scores[key_] = values;
        __syncthreads();
#pragma unroll
        for (int j = 0; j < own; ++j)
            if (thread_ / 32 == j && keeps(now, sees[j], j)) put_sum(now, j, largest[j]);
    }

    // By a warp, both its halves the same.
    __device__ void put_sum(Range now, int j, float largest) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < kChunk; k += kLanes)
            sum = sum + space_.scores.template part<float>(k + thread_ % kLanes, j);
        sum = sum_of_lanes(sum);
        if (thread_ % 32 != 0) return;
        const size_t place = pair_of(now, j).place_of(before_);
        task_.partials.max[place] = largest;
        task_.partials.sum[place] = sum;
    }

    // A thread an element: sum_i p_i v_i in the order of positions.
    template <int own>
    __device__ void mix(Range now, const Range (&sees)[own], int slab) {
        const int element = slab * kSlabElements<T> + thread_;
        if (thread_ >= kSlabElements<T> || element >= dim_) return;
        const int slot = (slabs_ + slab) % 2, quad = thread_ / kQuadElements<T>;
        Range all_see = all_;
#pragma unroll
        for (int j = 0; j < own; ++j)
            all_see = {max(all_see.begin, sees[j].begin), min(all_see.end, sees[j].end)};
        float mixed[own] = {};
        const auto add = [&](int i, bool all) {
            const float value = value_of(space_.slabs.template part<T>(slab_place(slot, i, quad),
                                                                       thread_ % kQuadElements<T>));
            const PairValues weights = space_.scores[i];
#pragma unroll
            for (int j = 0; j < own; ++j)
                if (all || sees[j].has(i)) mixed[j] = mixed[j] + weights.of[j] * value;
        };
        int i = all_.begin;
#pragma unroll 1
        for (; i < min(all_see.begin, all_.end); ++i) add(i, false);
#pragma unroll 8
        for (; i < all_see.end; ++i) add(i, true);
#pragma unroll 1
        for (; i < all_.end; ++i) add(i, false);
#pragma unroll
        for (int j = 0; j < own; ++j)
            if (keeps(now, sees[j], j))
                task_.partials
                    .mix[pair_of(now, j).place_of(before_) * size_t(dim_) + size_t(element)] =
                    mixed[j];
    }

    // Of the pairs that are taken now.
    __device__ Pair pair_of(Range now, int j) {
        return space_.pairs[min(now.begin + j, now.end - 1)];
    }
    __device__ static bool keeps(Range now, Range sees, int j) {
        return now.begin + j < now.end && !sees.is_empty();
    }

    static constexpr int kQueryFours = kMostSlabElements / 4;

    ChunkSpace& space_;
    const AttentionTask& task_;
    const int thread_ = int(threadIdx.x), key_ = thread_ / 2, half_ = thread_ % 2;
    const int dim_, slabs_, pairs_, kv_element_;
    int before_ = 0;  // position before which the chunk has none
    Range all_{};     // positions of it that anybody sees
};

}  // namespace aerie::cuda
