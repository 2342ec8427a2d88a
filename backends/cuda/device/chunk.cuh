// A chunk of attention by a block of threads: of some pairs of a row and a query head the largest
// score, the sum of exponentials and the mix of values. Keys, then values, come to shared memory
// by slabs; while one is used the next one is under way.
#pragma once

#include "cuda/device/chunk_space.cuh"

namespace aerie::cuda {

// T is what the cache holds. Where a head takes one slab, queries come once for all chunks.
template <class T, bool one_slab>
class ChunkBlock {
    template <int own>
    static constexpr int kMine = (own + 1) / 2;  // pairs of a thread, when scores are softened

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
        const Range seen = hull({its.begin, its.end}, sees);
        const Range sequences = hull({its.sequence, its.sequence}, sees);
        int fork = hull({its.plain, 0}, sees && its.plain < its.end).begin;
        if (sequences.begin != sequences.end) fork = 0;
        sequence_ = sequences.end;
        if (seen.is_empty()) return;
        const Range chunks{seen.begin / kChunk, tiles_of(seen.end, kChunk)};
        const int alike = max(min(fork / kChunk, chunks.end), chunks.begin);
        const int together = alike - chunks.begin;
        const int row_bits = 31 - __clz(task_.own_rows);
        // What blocks that share the items have to do one after the other is what counts.
        const int deep = int(gridDim.z), alone = together + ((chunks.end - alike) << row_bits);
        const int forked = together + pairs_ / kOwn;
        const bool forks =
            has_tails(fork, seen.end) && tiles_of(forked, deep) < tiles_of(alone, deep);
        const int items = forks ? forked : alone;
        for (int item = int(blockIdx.z); item < items; item += int(gridDim.z)) {
            const int single = item - together, of = single >> row_bits;
            if constexpr (one_slab)
                if (forks && single >= 0) {
                    attend_fork(fork, single * kOwn);
                    continue;
                }
            attend_chunk(single < 0 ? chunks.begin + item : alike + of,
                         single < 0 ? kAllRows : single - (of << row_bits));
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

    // Whether rows part within the last chunk, at `fork`, and what each has from there on, its tail,
    // has room in a slab beside those of the others that are taken with it.
    __device__ bool has_tails(int fork, int end) const {
        return one_slab && pairs_ % kOwn == 0 && kOwn % task_.own_heads == 0 &&
               task_.own_heads < kOwn && fork % kChunk > 0 && fork < end &&
               tiles_of(end, kChunk) == tiles_of(fork, kChunk) && end - fork <= 1 << tail_bits();
    }
    __device__ int tail_bits() const { return 31 - __clz(kChunk / kOwn * task_.own_heads); }

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

    // The chunk in which rows have tails from position `fork` on, for the pairs from `first` on; what
    // is before lies alike for all. The operations of a pair are those of attend_chunk.
    __device__ void attend_fork(int fork, int first) {
        const Range now{first, first + kOwn};
        const int span_bits = tail_bits();
        before_ = fork / kChunk * kChunk;
        const int shared = fork - before_;
        const Range sees_one = pair_of_lane(now).within(before_);
        const Range seen = hull(sees_one, !sees_one.is_empty());
        __syncthreads();  // of what the item before has read
        {
            const int tail = thread_ - kChunk, of = tail >> span_bits;
            int slot = before_ + min(thread_, shared - 1);
            if (tail >= 0) {  // where a row has none: a copy of what all have
                const Pair its = space_.pairs[first + of * task_.own_heads];
                const int position = min(fork + tail - (of << span_bits), its.end - 1);
                slot = position < fork ? fork - 1 : slot_of(row(its.row), position);
            }
            space_.cached[thread_] = unsigned(task_.cache.row(sequence_, slot));
        }
        __syncthreads();
        copy_keys(0, 0);
        copy_keys(0, 1, kChunk);
        commit_copies();
        wait_for_copies<0>();
        __syncthreads();
        Range sees[kOwn];
#pragma unroll
        for (int j = 0; j < kOwn; ++j) sees[j] = pair_of(now, j).within(before_);
        add_fork_products(now, shared, span_bits);
        __syncthreads();
        copy_values(0, 1);
        copy_values(0, 0, kChunk);
        commit_copies();
        commit_copies();  // none: see arrive
        float scores[kMine<kOwn>];
#pragma unroll
        for (int i = 0; i < kMine<kOwn>; ++i) {
            const int j = half_ * kMine<kOwn> + i;
            scores[i] = pair_of(now, j).within(before_).has(key_)
                            ? float(space_.scores[key_ * kOwn + j])
                            : 0.0f;
        }
        soften<kOwn>(scores, now, sees);
        float mixed[kOwn] = {};
        if (thread_ < dim_) {
            all_ = {seen.begin, min(seen.end, shared)};
            Range before[kOwn];
#pragma unroll
            for (int j = 0; j < kOwn; ++j) before[j] = {sees[j].begin, min(sees[j].end, shared)};
            mix<kOwn>(mixed, before, 0);
#pragma unroll 1
            for (int i = max(shared, seen.begin); i < seen.end; ++i) {
                const float4 four = space_.scores.template joined<float4>(i * kOwn);
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
        if (adds_) __syncthreads();  // the weights are known
        if (thread_ < dim_) keep<kOwn>(mixed, now, sees, thread_);
    }
    // Products of what lies alike, for all pairs, and of tails, for those of their rows.
    __device__ void add_fork_products(Range now, int shared, int span_bits) {
        {
            float lanes[kOwn][kHalf] = {}, sums[kMine<kOwn>];
            add_products<kOwn>(lanes, now, 0, 0, 0);
            sums_of_both(sums, lanes);
#pragma unroll
            for (int i = 0; i < kMine<kOwn>; ++i)
                if (key_ < shared) space_.scores[key_ * kOwn + half_ * kMine<kOwn> + i] = sums[i];
        }
        const int first = (key_ >> span_bits) * task_.own_heads;
        const int position = shared + (key_ & ((1 << span_bits) - 1));
        for (int j = first; j < first + task_.own_heads; ++j) {
            float lanes[1][kHalf] = {}, sum[1];
            add_products<1>(lanes, {now.begin + j, now.begin + j + 1}, 0, 0, 1);
            sums_of_both(sum, lanes);
            if (position < kChunk && half_ == 0) space_.scores[position * kOwn + j] = sum[0];
        }
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
                if (all_.has(key_))
                    add_products<own>(lanes, now, one_slab ? 0 : pairs.begin, slab, slab % 2);
                leave(slab);
            }
            float scores[kMine<own>];
            sums_of_both(scores, lanes);
            soften<own>(scores, now, sees);
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
        if (i < slabs())
            copy_keys(i, i % 2);
        else if (i < 2 * slabs())
            copy_values(i - slabs(), i % 2);
        commit_copies();  // also where there is nothing: the count of groups must be right
    }
    // To a place for slabs, of the rows that `cached` names from there on.
    __device__ void copy_keys(int slab, int slot, int cached = 0) {
        copy(slab, cached + copied_, task_.cache.k_data, task_.cache.k_stride,
             key_place(slot, copied_, quad_));
    }
    __device__ void copy_values(int slab, int slot, int cached = 0) {
        copy(slab, cached + copied_, task_.cache.v_data, task_.cache.v_stride,
             value_place(slot, copied_, quad_));
    }
    // A thread's share of a slab, the same quad of some positions.
    __device__ void copy(int slab, int first, const std::byte* data, size_t stride, int to) {
        constexpr int kTogether = kChunkThreads / kSlabQuads, kEach = kChunk / kTogether;
        static_assert(kTogether % kTurned == 0);
        const int element = slab * kSlabElements<T> + quad_ * kQuadElements<T>;
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

    // Adds the products of a slab's elements with a thread's key there, lane by lane.
    template <int own>
    __device__ void add_products(float (&lanes)[own][kHalf], Range now, int first, int slab,
                                 int slot) {
        int queries[own];
#pragma unroll
        for (int j = 0; j < own; ++j)
            queries[j] = (min(now.begin + j, now.end - 1) - first) * kQueryFours + half_ * 2;
        const int count = min(dim_ - slab * kSlabElements<T>, kSlabElements<T>) / kLanes;
        const auto add = [&](int m) {
            float keys[kHalf];
            take_half<T>(keys, space_, slot, key_, m * 2 + half_);
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

    // Sums of products become scores, and these exp(score - maximum): the two threads of a key have
    // half of the pairs each, or both the only one.
    template <int own>
    __device__ void soften(float (&scores)[kMine<own>], Range now, const Range (&sees)[own]) {
        const int first = own == 1 ? 0 : half_ * kMine<own>, warp = thread_ / 32;
#pragma unroll
        for (int i = 0; i < kMine<own>; ++i) {
            const bool sees_it = (half_ && own > 1 ? sees[own - kMine<own> + i] : sees[i]).has(key_);
            scores[i] = (sees_it ? scores[i] : -infinity()) * task_.scale;
            float largest = larger(scores[i], -infinity());
#pragma unroll
            for (int distance = 16; distance > 1; distance /= 2)
                largest = larger(__shfl_xor_sync(kAllLanes, largest, distance), largest);
            if (thread_ % 32 == (own > 1 ? half_ : 0)) space_.largest[(first + i) * kChunkWarps + warp] = largest;
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kMine<own>; ++i) {
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
        const int slot = (slabs() + slab) % 2;
        Range all_see = all_;
#pragma unroll
        for (int j = 0; j < own; ++j)
            all_see = {max(all_see.begin, sees[j].begin), min(all_see.end, sees[j].end)};
        const auto add_seen = [&](int i) {
            const float its = value(slot, i);
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
                    mixed[w % own] = mixed[w % own] + weights[w] * value(slot, i + more + w / own);
            }
#pragma unroll 1
        for (; i < all_.end; ++i) add_seen(i);
    }
    // Of a thread's element.
    __device__ float value(int slot, int position) {
        return value_of(space_.slabs.template part<T>(
            value_place(slot, position, thread_ / kQuadElements<T>), thread_ % kQuadElements<T>));
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
