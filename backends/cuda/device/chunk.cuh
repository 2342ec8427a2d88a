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
        const Pair its = pair_of_lane({0, pairs_});
        const bool sees = its.end > 0;
        const Range chunks = hull({its.begin / kChunk, (its.end + kChunk - 1) / kChunk}, sees);
        const Range sequences = hull({its.sequence, its.sequence}, sees);
        int alike = hull({its.plain / kChunk, 0}, sees && its.plain < its.end).begin;
        if (sequences.begin != sequences.end) alike = 0;
        sequence_ = sequences.end;
        if (chunks.is_empty()) return;
        alike = max(min(alike, chunks.end), chunks.begin);
        const int together = alike - chunks.begin;
        const int items = together + (chunks.end - alike) * task_.own_rows;
        for (int item = int(blockIdx.z); item < items; item += int(gridDim.z)) {
            const int single = item - together, of = single / task_.own_rows;
            attend_chunk(single < 0 ? chunks.begin + item : alike + of,
                         single < 0 ? kAllRows : single - of * task_.own_rows);
        }
    }

  private:
    __device__ const Row& row(int r) const { return *reinterpret_cast<const Row*>(task_.rows[r]); }

    __device__ Pair pair(int i) const {
        const int r = int(blockIdx.y) * task_.own_rows + i / task_.own_heads;
        const int head = int(blockIdx.x) * task_.own_heads + i % task_.own_heads;
        const int last = task_.rows.rows - 1;  // whose query is read beyond it, too
        const auto query = unsigned(size_t(min(r, last)) * task_.qkv.stride + size_t(head * dim_));
        if (r > last || row(r).slot < 0) return {0, 0, 0, 0, query, 0};
        const Row& its = row(r);
        const int end = its.position + 1;
        const bool is_plain = its.prefix == its.position && its.slot == its.position;
        return {task_.partials.first(its),
                end,
                is_plain ? end : its.prefix,
                its.sequence,
                query,
                unsigned(task_.partials.place(r, head, 0))};
    }
    // Each lane of a warp has one of these; some have the same.
    __device__ Pair pair_of_lane(Range pairs) const {
        return space_.pairs[min(pairs.begin + thread_ % 32, pairs.end - 1)];
    }
    // Of the ranges of a warp's lanes, those aside that do not count: from the first begin to the
    // last end.
    __device__ static Range hull(Range its, bool counts) {
        return {least_of_warp(counts ? its.begin : 1 << 30),
                ~least_of_warp(counts ? ~its.end : ~0)};
    }

    // A chunk for the pairs of one row, or of all, where it lies in slots of their numbers.
    __device__ void attend_chunk(int chunk, int alone) {
        const bool is_alone = alone != kAllRows;
        const Range pairs = is_alone ? Range{alone * task_.own_heads, (alone + 1) * task_.own_heads}
                                     : Range{0, pairs_};
        before_ = chunk * kChunk;
        const Pair its = pair_of_lane(pairs);
        const Range sees = its.within(before_);
        all_ = hull(sees, !sees.is_empty());
        if (all_.is_empty()) return;
        __syncthreads();  // of what the item before has read
        if (all_.has(thread_)) {
            const int position = before_ + thread_;
            const int r = int(blockIdx.y) * task_.own_rows + alone;
            const int slot = is_alone ? slot_of(row(r), position) : position;
            const int sequence = is_alone ? its.sequence : sequence_;
            space_.cached[thread_] = unsigned(task_.cache.row(sequence, slot));
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
        const int first = thread_ / kSlabQuads, quad = thread_ % kSlabQuads;
        if (i < slabs_)
            copy(i, first, task_.cache.k_data, task_.cache.k_stride, key_place(i % 2, first, quad));
        else if (i < 2 * slabs_)
            copy(i - slabs_, first, task_.cache.v_data, task_.cache.v_stride,
                 value_place(i % 2, first, quad));
        commit_copies();  // also where there is nothing: the count of groups must be right
    }
    // A thread's share of a slab, the same quad of some positions; those that nobody sees are
    // copies of what somebody does.
    __device__ void copy(int slab, int first, const std::byte* data, size_t stride, int to) {
        constexpr int kTogether = kChunkThreads / kSlabQuads, kEach = kChunk / kTogether;
        static_assert(kTogether % kTurned == 0);
        const int element = slab * kSlabElements<T> + thread_ % kSlabQuads * kQuadElements<T>;
        if (element >= dim_) return;
        const T* from = reinterpret_cast<const T*>(data) + kv_element_ + element;
        unsigned rows[kEach];  // all of them before the first copy
#pragma unroll
        for (int i = 0; i < kEach; ++i)
            rows[i] = space_.cached[min(max(first + i * kTogether, all_.begin), all_.end - 1)];
#pragma unroll
        for (int i = 0; i < kEach; ++i)
            copy_async(space_.slabs, to + i * kTogether * kSlabQuads,
                       reinterpret_cast<const uint4*>(from + size_t(rows[i]) * unsigned(stride)));
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
        const int element = slab * kSlabElements<T>, four = thread_ % 32;
        if (four * 4 >= min(dim_ - element, kSlabElements<T>)) return;
#pragma unroll 4
        for (int i = thread_ / 32; i < pairs.end - pairs.begin; i += kChunkThreads / 32) {
            const Pair its = space_.pairs[pairs.begin + i];
            const float* query = task_.qkv.data + its.query + element + four * 4;
            space_.queries[i * kQueryFours + four] =
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
#pragma unroll
        for (int j = 0; j < own; ++j) values.of[j] = exp_of(scores[j] - largest_of(j));
        if (half_ == 0) space_.scores[key_] = values;
        __syncthreads();
        const int j = thread_ / 32;
        if (j < own && keeps(now, pair_of(now, j).within(before_), j)) put_sum(now, j);
    }

    // Of a pair's scores.
    __device__ float largest_of(int j) const {
        float largest = -infinity();
#pragma unroll
        for (int warp = 0; warp < kChunkThreads / 32; ++warp)
            largest = larger(space_.largest.template part<float>(warp, j), largest);
        return largest;
    }

    // By a warp, both its halves the same.
    __device__ void put_sum(Range now, int j) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < kChunk; k += kLanes)
            sum = sum + space_.scores.template part<float>(k + thread_ % kLanes, j);
        sum = sum_of_lanes(sum);
        if (thread_ % 32 != 0) return;
        const unsigned place = pair_of(now, j).place_of(before_);
        task_.partials.max[place] = largest_of(j);
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
            const float value = value_of(space_.slabs.template part<T>(value_place(slot, i, quad),
                                                                       thread_ % kQuadElements<T>));
            const PairValues weights = space_.scores[i];
#pragma unroll
            for (int j = 0; j < own; ++j)
                if (all || sees[j].has(i)) mixed[j] = mixed[j] + weights.of[j] * value;
        };
        int i = all_.begin;
#pragma unroll 1
        for (; i < min(all_see.begin, all_.end); ++i) add(i, false);
#pragma unroll(own == 1 ? 16 : 8)
        for (; i < all_see.end; ++i) add(i, true);
#pragma unroll 1
        for (; i < all_.end; ++i) add(i, false);
#pragma unroll
        for (int j = 0; j < own; ++j)
            if (keeps(now, sees[j], j))
                task_.partials.mix[size_t(pair_of(now, j).place_of(before_)) * unsigned(dim_) +
                                   unsigned(element)] = mixed[j];
    }

    // Of the pairs that are taken now.
    __device__ Pair pair_of(Range now, int j) {
        return space_.pairs[min(now.begin + j, now.end - 1)];
    }
    __device__ static bool keeps(Range now, Range sees, int j) {
        return now.begin + j < now.end && !sees.is_empty();
    }

    static constexpr int kAllRows = -1;
    static constexpr int kQueryFours = kMostSlabElements / 4;
    static constexpr int kCopied = kChunkThreads / kSlabQuads;  // positions at a time

    ChunkSpace& space_;
    const AttentionTask& task_;
    const int thread_ = int(threadIdx.x), key_ = thread_ / 2, half_ = thread_ % 2;
    const int copied_ = thread_ / kSlabQuads, quad_ = thread_ % kSlabQuads;
    const int dim_, slabs_, pairs_, kv_element_;
    int before_ = 0;    // position before which the chunk has none
    Range all_{};       // positions of it that anybody sees
    int sequence_ = 0;  // of all rows, where chunks lie alike for them
};

}  // namespace aerie::cuda
