// A chunk of attention by a block of threads: of some pairs of a row and a query head the largest
// score, the sum of exponentials and the mix of values. Keys, then values, come to shared memory
// by slabs; while one is used the next one is under way.
#pragma once

#include "cuda/device/chunk_space.cuh"

namespace aerie::cuda {

// T is what the cache holds. Where a head takes one slab, queries come once for all chunks.
template <class T, bool one_slab>
class ChunkBlock {
  public:
    // `adds`: it has all chunks of its pairs and adds them up; or it leaves them in Partials.
    __device__ ChunkBlock(ChunkSpace& space, const AttentionTask& task, bool adds)
        : space_(space),
          task_(task),
          adds_(adds),
          dim_(task.shape.head_dim),
          pairs_(task.own_heads * task.own_rows),
          kv_element_(int(blockIdx.x) * task.own_heads / (task.shape.heads / task.shape.kv_heads) *
                      dim_) {}

    // Blocks along z share the chunks: those that lie alike for all rows, then each row's own.
    __device__ void run() {
        if (thread_ < pairs_) {
            space_.pairs[thread_] = pair(thread_);
            space_.sums[thread_] = make_float2(-infinity(), 0);
        }
        for (int i = thread_; i < pairs_ * dim_; i += kChunkThreads) space_.mix[i] = 0;
        __syncthreads();
        if constexpr (one_slab) load_queries({0, pairs_}, 0);
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
        const int row_bits = 31 - __clz(task_.own_rows);
        for (int item = int(blockIdx.z); item < items; item += int(gridDim.z)) {
            const int single = item - together, of = single >> row_bits;
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
        if (r > last || row(r).slot < 0) return {0, 0, 0, 0, query, 0, r, head};
        const Row& its = row(r);
        const int end = its.position + 1;
        const bool is_plain = its.prefix == its.position && its.slot == its.position;
        return {task_.partials.first(its),
                end,
                is_plain ? end : its.prefix,
                its.sequence,
                query,
                unsigned(task_.partials.place(r, head, 0)) -
                    unsigned(task_.partials.first(its) / kChunk),
                r,
                head};
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
        if (thread_ < kChunk) {  // those that nobody sees are copies of what somebody does
            const int position = before_ + min(max(thread_, all_.begin), all_.end - 1);
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
#pragma unroll(one_slab ? 2 : 1)
        for (int i = 0; i < 2; ++i) load(i);
#pragma unroll 1
        for (int first = pairs.begin; first < pairs.end; first += own) {
            const Range now{first, min(first + own, pairs.end)};
            Range sees[own];  // beyond the last pair: as that one, but nothing is kept
#pragma unroll
            for (int j = 0; j < own; ++j) sees[j] = pair_of(now, j).within(before_);
            float lanes[own][kHalf] = {};
#pragma unroll 1
            for (int slab = 0; slab < slabs(); ++slab) {
                if (!one_slab && (slab > 0 || first == pairs.begin)) load_queries(pairs, slab);
                arrive();
                add_products<own>(lanes, now, one_slab ? 0 : pairs.begin, slab);
                leave(slab);
            }
            soften<own>(lanes, now, sees);
#pragma unroll 1
            for (int slab = 0; slab < slabs(); ++slab) {
                if (slab > 0) arrive();
                float mixed[own] = {};
                const int element = slab * kSlabElements<T> + thread_;
                const bool is_mine = thread_ < kSlabElements<T> && element < dim_;
                if (is_mine) mix<own>(mixed, sees, slab);
                if (adds_) __syncthreads();  // the weights are known
                if (is_mine) keep<own>(mixed, now, sees, element);
                leave(slabs() + slab);
            }
        }
    }

    __device__ int slabs() const { return one_slab ? 1 : tiles_of(dim_, kSlabElements<T>); }

    // Load number i: keys, then values.
    __device__ void load(int i) {
        const int first = thread_ / kSlabQuads, quad = thread_ % kSlabQuads;
        if (i < slabs())
            copy(i, first, task_.cache.k_data, task_.cache.k_stride, key_place(i % 2, first, quad));
        else if (i < 2 * slabs())
            copy(i - slabs(), first, task_.cache.v_data, task_.cache.v_stride,
                 value_place(i % 2, first, quad));
        commit_copies();  // also where there is nothing: the count of groups must be right
    }
    // A thread's share of a slab, the same quad of some positions.
    __device__ void copy(int slab, int first, const std::byte* data, size_t stride, int to) {
        constexpr int kTogether = kChunkThreads / kSlabQuads, kEach = kChunk / kTogether;
        static_assert(kTogether % kTurned == 0);
        const int element = slab * kSlabElements<T> + thread_ % kSlabQuads * kQuadElements<T>;
        if (element >= dim_) return;
        const std::byte* from = data + size_t(kv_element_ + element) * sizeof(T);
        const auto apart = unsigned(stride * sizeof(T));
        unsigned rows[kEach];  // all of them before the first copy
#pragma unroll
        for (int i = 0; i < kEach; ++i) rows[i] = space_.cached[first + i * kTogether];
#pragma unroll
        for (int i = 0; i < kEach; ++i)
            copy_async(space_.slabs, to + i * kTogether * kSlabQuads,
                       reinterpret_cast<const uint4*>(from + size_t(rows[i]) * apart));
    }
    // The older one of the loads under way is there, for all threads.
    __device__ void arrive() {
        wait_for_copies<1>();
        __syncthreads();
    }
    // Load number i has been used, and gives its place to the next but one.
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
        const auto add = [&](int m) {
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
        };
        constexpr int kTogether = own == 1 ? 4 : 2;
        int m = 0;
#pragma unroll 1
        for (; m + kTogether <= count; m += kTogether)
#pragma unroll
            for (int i = 0; i < kTogether; ++i) add(m + i);
#pragma unroll 1
        for (; m < count; ++m) add(m);
    }

    // Sums become scores, and scores exp(score - maximum): the two threads of a key have half of
    // the pairs each, or both the only one.
    template <int own>
    __device__ void soften(const float (&lanes)[own][kHalf], Range now, const Range (&sees)[own]) {
        constexpr int kMine = (own + 1) / 2;
        const int first = own == 1 ? 0 : half_ * kMine, warp = thread_ / 32;
        float scores[kMine];
        sums_of_both(scores, lanes);
#pragma unroll
        for (int i = 0; i < kMine; ++i) {
            const bool sees_it = (half_ && own > 1 ? sees[own - kMine + i] : sees[i]).has(key_);
            scores[i] = (sees_it ? scores[i] : -infinity()) * task_.scale;
            float largest = larger(scores[i], -infinity());
#pragma unroll
            for (int distance = 16; distance > 1; distance /= 2)
                largest = larger(__shfl_xor_sync(kAllLanes, largest, distance), largest);
            if (thread_ % 32 == (own > 1 ? half_ : 0)) space_.largest[(first + i) * kChunkWarps + warp] = largest;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kMine; ++i) {
            const float weight = exp_of(scores[i] - largest_of(first + i));
            if (own > 1 || half_ == 0) space_.scores[key_ * own + first + i] = weight;
        }
        arrive();  // of values, too
        if (warp < own && keeps(now, pair_of(now, warp).within(before_), warp))
            keep_sum<own>(now, warp);
    }

    // Of a pair's scores.
    __device__ float largest_of(int j) const {
        const float4 its = space_.largest.template joined<float4>(j * kChunkWarps);
        return larger(its.w, larger(its.z, larger(its.y, larger(its.x, -infinity()))));
    }

    // By a warp, both its halves the same.
    template <int own>
    __device__ void keep_sum(Range now, int j) {
        float sum = 0;
#pragma unroll
        for (int k = 0; k < kChunk; k += kLanes)
            sum = sum + space_.scores[(k + thread_ % kLanes) * own + j];
        sum = sum_of_lanes(sum);
        if (thread_ % 32 != 0) return;
        const float largest = largest_of(j);
        if (adds_) {
            const float2 before = space_.sums[now.begin + j];
            const float largest_now = larger(largest, before.x);
            const ChunkWeight its(before.x, largest, largest_now);
            space_.sums[now.begin + j] = make_float2(largest_now, its.add(before.y, sum));
            space_.weights[j] = its;
        } else {
            const unsigned place = pair_of(now, j).place_of(before_);
            task_.partials.max[place] = largest;
            task_.partials.sum[place] = sum;
        }
    }

    // Of a thread's element: sum_i p_i v_i in the order of positions.
    template <int own>
    __device__ void mix(float (&mixed)[own], const Range (&sees)[own], int slab) {
        constexpr int kTogether = kOwn / own;  // positions, whose weights come at once
        const int slot = (slabs() + slab) % 2, quad = thread_ / kQuadElements<T>;
        Range all_see = all_;
#pragma unroll
        for (int j = 0; j < own; ++j)
            all_see = {max(all_see.begin, sees[j].begin), min(all_see.end, sees[j].end)};
        const auto value = [&](int i) {
            return value_of(space_.slabs.template part<T>(value_place(slot, i, quad),
                                                          thread_ % kQuadElements<T>));
        };
        const auto add_seen = [&](int i) {
            const float its = value(i);
#pragma unroll
            for (int j = 0; j < own; ++j)
                if (sees[j].has(i)) mixed[j] = mixed[j] + space_.scores[i * own + j] * its;
        };
        int i = all_.begin;
#pragma unroll 1
        for (; i < min(tiles_of(all_see.begin, kTogether) * kTogether, all_.end); ++i) add_seen(i);
        constexpr int kAtOnce = 8;
#pragma unroll 1
        for (; i + kAtOnce <= all_see.end; i += kAtOnce)
#pragma unroll
            for (int more = 0; more < kAtOnce; more += kTogether) {
                const float4 four = space_.scores.template joined<float4>((i + more) * own);
                const float weights[] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int w = 0; w < kOwn; ++w)
                    mixed[w % own] = mixed[w % own] + weights[w] * value(i + more + w / own);
            }
#pragma unroll 1
        for (; i < all_.end; ++i) add_seen(i);
    }
    template <int own>
    __device__ void keep(const float (&mixed)[own], Range now, const Range (&sees)[own],
                         int element) {
#pragma unroll
        for (int j = 0; j < own; ++j) {
            if (!keeps(now, sees[j], j)) continue;
            if (adds_) {
                const int place = (now.begin + j) * dim_ + element;
                const ChunkWeight its = space_.weights[j];
                space_.mix[place] = its.add(space_.mix[place], mixed[j]);
            } else {
                const unsigned place = pair_of(now, j).place_of(before_);
                task_.partials.mix[size_t(place) * unsigned(dim_) + unsigned(element)] = mixed[j];
            }
        }
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
    const bool adds_;
    const int thread_ = int(threadIdx.x), key_ = thread_ / 2, half_ = thread_ % 2;
    const int copied_ = thread_ / kSlabQuads, quad_ = thread_ % kSlabQuads;
    const int dim_, pairs_, kv_element_;
    int before_ = 0;    // position before which the chunk has none
    Range all_{};       // positions of it that anybody sees
    int sequence_ = 0;  // of all rows, where chunks lie alike for them
};

}  // namespace aerie::cuda
