// A block of attention: which pairs of a row and a query head it has, which chunks of their
// histories are shared, and how K and V come to shared memory. A chunk is shared (`alike`) if all
// pairs have each of its positions in the slot of the same number. Derived classes compute the
// chunks.
#pragma once

#include "cuda/device/chunk_space.cuh"

namespace aerie::cuda {

// A chunk of 64 positions, and those of them that the block's pairs attend to.
struct ChunkPlace {
    int before;  // the chunk's first position
    Range all;   // positions, counted from `before`, that some pair attends to
    int page;    // page of the KV cache, if the chunk is shared

    // Cache row of a position of a shared chunk. Instead of a position that no pair attends to, the
    // nearest that some pair does attend to is loaded.
    __device__ unsigned row(int position) const {
        return unsigned(page * kChunk + min(max(position, all.begin), all.end - 1));
    }
};

// T: the element type of the KV cache. one_slab: a head is no longer than a slab.
template <class T, bool one_slab>
class ChunkBlock {
  protected:
    // `adds`: the block has all chunks of its pairs and merges them; else it stores each in
    // Partials.
    __device__ ChunkBlock(ChunkSpace& space, const AttentionTask& task, bool adds)
        : space_(space),
          task_(task),
          adds_(adds),
          dim_(task.shape.head_dim),
          pairs_(task.own_heads * task.own_rows),
          kv_element_(int(blockIdx.x) * task.own_heads / (task.shape.heads / task.shape.kv_heads) *
                      dim_) {}

    // The chunks that the block's pairs attend to. `alike` is the first that is not shared: from
    // position `fork` on no position is. `end` is where the longest history ends.
    struct Chunks {
        Range all;
        int shared_end, fork, end;
    };
    __device__ Chunks name_pairs() {
        if (thread_ < pairs_) space_.pairs[thread_] = pair(thread_);
        __syncthreads();
        const Pair pair = pair_of_lane({0, pairs_});
        const bool sees = pair.end > 0;
        const Range seen = hull({pair.begin, pair.end}, sees);
        const Range sequences = hull({pair.sequence, pair.sequence}, sees);
        int fork = hull({pair.plain, 0}, sees && pair.plain < pair.end).begin;
        if (sequences.begin != sequences.end) fork = 0;
        sequence_ = sequences.end;
        const Range chunks{seen.begin / kChunk, tiles_of(seen.end, kChunk)};
        return {chunks, max(min(fork / kChunk, chunks.end), chunks.begin), fork, seen.end};
    }

    __device__ const Row& row(int r) const { return *reinterpret_cast<const Row*>(task_.rows[r]); }

    // Pair j of those in `now`; beyond the last one it is the last.
    __device__ Pair pair_of(Range now, int j) const {
        return space_.pairs[min(now.begin + j, now.end - 1)];
    }
    // A pair for each lane of a warp; lanes beyond the last pair have the last.
    __device__ Pair pair_of_lane(Range pairs) const { return pair_of(pairs, thread_ % 32); }
    // From the first begin to the last end of the ranges of a warp's lanes, over the lanes where
    // `counts` is true.
    __device__ static Range hull(Range range, bool counts) {
        return {least_of_warp(counts ? range.begin : 1 << 30),
                ~least_of_warp(counts ? ~range.end : ~0)};
    }
    // The positions of chunk now_ that some of these pairs attend to.
    __device__ Range seen_of(Range pairs) const {
        const Range seen = pair_of_lane(pairs).within(now_.before);
        return hull(seen, !seen.is_empty());
    }

    // A shared chunk; empty unless `is_one`.
    __device__ ChunkPlace alike_chunk(int chunk, bool is_one) const {
        ChunkPlace place{chunk * kChunk, {0, 0}, 0};
        if (!is_one) return place;
        place.page = task_.cache.pages[sequence_][chunk];  // early, to hide its latency
        const Range seen = pair_of_lane({0, pairs_}).within(place.before);
        place.all = hull(seen, !seen.is_empty());
        return place;
    }
    __device__ int slot_of(const Pair& pair, int position) const {
        if (position < pair.plain) return position;
        const Row& pair_row = row(pair.row);
        return *(position < pair.end - 1 ? &pair_row.path[position - pair.plain] : &pair_row.slot);
    }

    // Starts copies of a slab of K from cache rows row_of(0) .. row_of(63). `to` is the index in
    // shared memory for quad `quad_` of row `copied_`; the same quad of the row kCopied further is
    // kCopied * kSlabQuads words further.
    template <class RowOf>
    __device__ void copy_keys(int slab, int to, const RowOf& row_of) {
        copy(slab, to, task_.cache.k_data, task_.cache.k_stride, row_of);
    }
    template <class RowOf>
    __device__ void copy_values(int slab, int to, const RowOf& row_of) {
        copy(slab, to, task_.cache.v_data, task_.cache.v_stride, row_of);
    }
    // A row_of() that reads the cache rows from space_.cached, from index `first` on.
    __device__ auto named(int first) {
        return [this, first](int i) { return unsigned(space_.cached[first + i]); };
    }

    static constexpr int kCopied = kChunkThreads / kSlabQuads;  // rows copied at a time

    ChunkSpace& space_;
    const AttentionTask& task_;
    const bool adds_;
    const int thread_ = int(threadIdx.x);
    const int copied_ = thread_ / kSlabQuads, quad_ = thread_ % kSlabQuads;
    const int dim_, pairs_, kv_element_;
    int sequence_ = 0;  // the sequence of all rows, if there are shared chunks
    ChunkPlace now_{};

  private:
    __device__ Pair pair(int i) const {
        const int r = int(blockIdx.y) * task_.own_rows + i / task_.own_heads;
        const int head = int(blockIdx.x) * task_.own_heads + i % task_.own_heads;
        const int last = task_.rows.rows - 1;  // rows beyond the last one read its query
        const auto query = unsigned(size_t(min(r, last)) * task_.qkv.stride + size_t(head * dim_));
        if (r > last || row(r).slot < 0) return {0, 0, 0, 0, query, 0, r, head};
        const Row& row_of_pair = row(r);
        const int end = row_of_pair.position + 1;
        const bool is_plain =
            row_of_pair.prefix == row_of_pair.position && row_of_pair.slot == row_of_pair.position;
        return {task_.partials.first(row_of_pair),
                end,
                is_plain ? end : row_of_pair.prefix,
                row_of_pair.sequence,
                query,
                unsigned(task_.partials.place(r, head, 0)) -
                    unsigned(task_.partials.first(row_of_pair) / kChunk),
                r,
                head};
    }

    // Copies a thread's part of a slab: the same quad of kEach positions.
    template <class RowOf>
    __device__ void copy(int slab, int to, const std::byte* data, size_t stride,
                         const RowOf& row_of) {
        constexpr int kEach = kChunk / kCopied;
        const int element = slab * kSlabElements<T> + quad_ * kQuadElements<T>;
        if (element >= dim_) return;
        const std::byte* from = data + size_t(kv_element_ + element) * sizeof(T);
        const auto apart = unsigned(stride * sizeof(T));
        unsigned rows[kEach];  // all are loaded before the first copy starts
#pragma unroll
        for (int i = 0; i < kEach; ++i) rows[i] = row_of(copied_ + i * kCopied);
#pragma unroll
        for (int i = 0; i < kEach; ++i)
            copy_async(space_.slabs, to + i * kCopied * kSlabQuads,
                       reinterpret_cast<const uint4*>(from + size_t(rows[i]) * apart));
    }
};

}  // namespace aerie::cuda
