// A chunk of attention by matrix instructions, of K and V in f16: scores S = K Q^T, then O = V^T P
// with P = exp(S - maximum), each for up to 8 pairs of a row and a query head, which are the
// columns of the tiles. Q and P are two f16 parts each, like the activations of a matmul
// (columns.cuh). The sum of P is a product, too, with a V that is all ones.
//
// A pair's bits do not depend on the other pairs: a column is computed by itself, a key is a row of
// a tile wherever it lies, and O is summed over groups of 16 positions that begin at multiples of
// 16. Where pairs attend to different positions of such a group, or have them in different rows of
// the cache, each row multiplies its own.
#pragma once

#include "cuda/device/chunk_block.cuh"
#include "cuda/device/columns.cuh"

namespace aerie::cuda {

constexpr int kTileSide = 16;  // positions, or elements of a head
constexpr int kChunkTiles = kChunk / kTileSide;
constexpr int kSlabTiles = kMaxSlabElements / kTileSide;
static_assert(kChunkTiles == kChunkWarps && kMaxPairs == kTokenTile);

struct TilesSpace : ChunkSpace {
    // B fragments by lane: two words of the first part, then two of the second.
    SharedArray<unsigned, kSlabTiles * 32 * 4> queries;
    SharedArray<uint16_t, kChunkTiles * 32 * 8> p;  // P, in the same order
    SharedArray<float, kMaxPairs> inverse_scales;   // undo the scales of Q, by pair
};

// Index of the first f16 part of an element of a column in such fragments, in 16-bit units. The
// second part is two words further.
__device__ inline int column_half(int element, int column) {
    const int word = element % kTileSide / 2;
    const int lane = column * 4 + word % 4;
    return ((element / kTileSide * 32 + lane) * 4 + word / 4) * 2 + element % 2;
}

// Attention of a block by tiles. `adds`: the block has all chunks of its pairs and merges them in
// registers.
template <bool adds>
class ChunkTiles : ChunkBlock<uint16_t, true> {
    static constexpr int kOfWarp = kSlabTiles / kChunkWarps;  // O tiles of 16 elements per warp
    static constexpr int kElements = 2 * kOfWarp;             // elements of O per lane and column
    static constexpr int kQueriesOfWarp = kMaxPairs / kChunkWarps;

    // Accumulators of 16 rows and 8 columns: a lane has two rows of two columns, for each f16 part.
    struct Tile {
        float parts[F16::kParts][4] = {};

        __device__ void add(uint4 a, uint4 b) {
            mma_f16(parts[0], a, {b.x, b.y});
            mma_f16(parts[1], a, {b.z, b.w});
        }
        __device__ float of(int i) const { return parts[0][i] + parts[1][i]; }
    };
    // One of a lane's two columns, which is a pair: the positions that it attends to, its row, and
    // maximum, sum and O (the lane's rows of the warp's tiles) of the chunks so far.
    struct Column {
        Range sees = {0, 0};
        int row = 0;
        float largest = -infinity(), sum = 0, o[kElements] = {};
    };
    // Positions of the chunk: those that each of a lane's two columns attends to, or none if it is
    // not among the pairs that are computed now; and `all`: the shared positions that every pair
    // attends to, not counting pairs that attend to none.
    struct Sees {
        Range of[2], all;
    };
    // Some rows of the block, and where their positions of a chunk lie in shared memory: the
    // `shared` first positions lie in one slab, once for all rows; each row's others, its tail, lie
    // side by side in the other slab, 1 << span_bits places per row.
    struct Rows {
        Range pairs;
        int count, shared, span_bits;

        // Whether a place among the tails belongs to this row. Rows outside of these may get true
        // as well; their results are not stored.
        __device__ bool has(int row, int place) const {
            return (row & (count - 1)) == place >> span_bits && position(place) < kChunk;
        }
        __device__ int position(int place) const {
            return shared + (place & ((1 << span_bits) - 1));
        }
    };

  public:
    __device__ ChunkTiles(TilesSpace& space, const AttentionTask& task)
        : ChunkBlock(space, task, adds), shared_(space) {}

    // Blocks along z divide the work items among themselves: the shared chunks, then the chunks
    // with tails, for as many rows at a time as there is room for.
    __device__ void run() {
        const Chunks chunks = name_pairs();
        const int together = chunks.shared_end - chunks.all.begin, deep = int(gridDim.z);
        int item = int(blockIdx.z);
        next_ = alike_chunk(chunks.all.begin + item, item < together);
        ask_for_next_keys();
        take_queries();
        take_columns();
        for (; item < together; item += deep) {
            now_ = next_;
            next_ = alike_chunk(chunks.all.begin + item + deep, item + deep < together);
            attend();
        }
        const int row_bits = 31 - __clz(task_.own_rows);
        const int bits = min(tail_room_bits(chunks.end - chunks.fork), row_bits);
        const int apart = row_bits - bits;  // log2 of the items per chunk
        const int items = together + ((chunks.all.end - chunks.shared_end) << apart);
        for (; item < items; item += deep) {
            const int single = item - together, chunk = single >> apart;
            attend_tails(chunks.shared_end + chunk, chunks.fork,
                         (single - (chunk << apart)) << bits, bits);
        }
        if (adds) put_columns();
    }

  private:
    static constexpr int kSumWarp = kChunkWarps - 1;
    static constexpr int kNone = -1;

    // Computes chunk now_, which is shared, for all pairs. Its K is being copied already.
    __device__ void attend() {
        if (now_.all.is_empty()) return;
        const Rows rows{{0, pairs_}, task_.own_rows, kChunk, 0};
        __syncthreads();  // all have read the chunk before
        // 1. V to shared memory; K has been on its way since the chunk before.
        copy_values(0, place(kChunk + copied_, quad_), [&](int i) { return now_.row(i); });
        commit_copies();
        const Sees sees = sees_of(rows);
        wait_for_copies<1>();
        __syncthreads();
        float scores[4], largest[2];
        // 2. S = K Q^T, and its maximum over the block.
        score(scores, sees.of);
        largest_of_lane(largest, scores);
        leave_largest(largest);
        __syncthreads();  // all have used K as well
        // 3. P = exp(S - maximum), while K of the next chunk is copied.
        ask_for_next_keys();
        take_largest(largest);
        softmax(scores, largest);
        put_p(scores, [&](int i) { return position() + i / 2 * 8; });
        // 4. O = V^T P.
        wait_for_copies<1>();
        mix(rows, sees, largest);
    }

    // Computes a chunk with tails, for 1 << bits rows from `first` on: positions before `fork` are
    // shared.
    __device__ void attend_tails(int chunk, int fork, int first, int bits) {
        const int before = chunk * kChunk, count = 1 << bits, pair = first * task_.own_heads;
        const Rows rows{{pair, pair + (task_.own_heads << bits)},
                        count,
                        min(max(fork - before, 0), kChunk),
                        kChunkBits - bits};
        now_ = {before, {0, 0}, 0};
        now_.all = seen_of(rows.pairs);
        if (now_.all.is_empty()) return;
        __syncthreads();  // all have read the chunk before
        name_cached(rows);
        __syncthreads();
        // 1. K of the shared positions and of the tails to shared memory.
        copy_keys(0, place(copied_, quad_), named(0));
        copy_keys(0, place(kChunk + copied_, quad_), named(kChunk));
        commit_copies();
        const Sees sees = sees_of(rows);
        Range seen_alike[2];
#pragma unroll
        for (int c = 0; c < 2; ++c)
            seen_alike[c] = {sees.of[c].begin, min(sees.of[c].end, rows.shared)};
        wait_for_copies<0>();
        __syncthreads();
        float scores[4], tails[4], largest[2], of_tails[2];
        // 2. S = K Q^T of both, and the maximum over the block.
        score(scores, seen_alike);
        multiply_keys(tails, kChunk);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int place = position() + i / 2 * 8;
            tails[i] =
                rows.has(columns_[i % 2].row, place) && sees.of[i % 2].has(rows.position(place))
                    ? tails[i]
                    : -infinity();
        }
        largest_of_lane(largest, scores);
        largest_of_lane(of_tails, tails);
#pragma unroll
        for (int c = 0; c < 2; ++c) largest[c] = larger(of_tails[c], largest[c]);
        leave_largest(largest);
        __syncthreads();  // all have used K as well
        // 3. P = exp(S - maximum), while V takes the places of K: of the shared positions in the
        // second slab, of the tails in the first.
        copy_values(0, place(kChunk + copied_, quad_), named(0));
        copy_values(0, place(copied_, quad_), named(kChunk));
        commit_copies();
        take_largest(largest);
        softmax(scores, largest);
        softmax(tails, largest);
        const Range of_tail{rows.shared, rows.shared + (1 << rows.span_bits)};
        put_p(scores, [&](int i) {
            const int place = position() + i / 2 * 8;
            return of_tail.has(place) ? kNone : place;
        });
        put_p(tails, [&](int i) {
            const int place = position() + i / 2 * 8;
            return rows.has(columns_[i % 2].row, place) ? rows.position(place) : kNone;
        });
        // 4. O = V^T P.
        wait_for_copies<0>();
        mix(rows, sees, largest);
    }

    // log2 of the number of rows that fit into a slab with their tails, if the longest has `length`
    // positions.
    __device__ static int tail_room_bits(int length) {
        return length < 1 || length > kChunk ? 0 : kChunkBits - 32 + __clz(length - 1);
    }
    // Lists the cache rows of the shared positions, then of the tails. Instead of a position that a
    // row does not attend to, one that it does attend to is loaded.
    __device__ void name_cached(const Rows& rows) {
        const int place = thread_ % kChunk;
        size_t row = 0;
        if (thread_ < kChunk && rows.shared > 0) {
            const int alike = min(max(place, now_.all.begin), rows.shared - 1);
            row = task_.cache.row(sequence_, now_.before + alike);
        } else {
            const Pair pair =
                space_.pairs[rows.pairs.begin + (place >> rows.span_bits) * task_.own_heads];
            const int position = now_.before + rows.position(place);
            if (pair.end > 0)
                row = task_.cache.row(pair.sequence,
                                      slot_of(pair, min(max(position, pair.begin), pair.end - 1)));
        }
        space_.cached[thread_] = unsigned(row);
    }
    __device__ void ask_for_next_keys() {
        if (!next_.all.is_empty())
            copy_keys(0, place(copied_, quad_), [&](int i) { return next_.row(i); });
        commit_copies();  // also if nothing was copied: wait_for_copies counts groups
    }

    // Index of a quad of a row in the two slabs, of which the second has rows 64 .. 127. The
    // swizzle keeps the same quad of 8 neighbouring rows in different banks.
    __device__ static int place(int row, int quad) {
        static_assert(kCopied % 8 == 0);
        return row * kSlabQuads + (quad ^ row % 8);
    }
    // A lane's number i of a tile is in column(i % 2) and in row position() + i / 2 * 8.
    __device__ int column(int c) const {
        return lane_ % 4 * 2 + c;
    }
    __device__ int position() const {
        return warp_ * kTileSide + lane_ / 4;
    }

    // Stores the two f16 parts of Q as fragments. A warp has two queries, a lane four elements of
    // each.
    __device__ void take_queries() {
        const int element = lane_ * 4;
        float values[kQueriesOfWarp][4] = {}, inverse[kQueriesOfWarp];
        unsigned words[kQueriesOfWarp][2][F16::kParts];
#pragma unroll
        for (int i = 0; i < kQueriesOfWarp; ++i) {
            const Pair pair = space_.pairs[min(warp_ + i * kChunkWarps, pairs_ - 1)];
            const float* query = task_.qkv.data + pair.query + element;
#pragma unroll
            for (int e = 0; e < 4; ++e)
                if (element < dim_) values[i][e] = query[e];
        }
#pragma unroll
        for (int i = 0; i < kQueriesOfWarp; ++i) {
            unsigned most = 0;
#pragma unroll
            for (float value : values[i]) most = max(most, magnitude_of(value));
            const float scale = scale_of(largest_of_warp(most));
            inverse[i] = inverse_of_power(scale);
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                float a = values[i][e * 2] * scale, b = values[i][e * 2 + 1] * scale;
#pragma unroll
                for (unsigned& word : words[i][e]) {
                    const unsigned low = F16::part(a), high = F16::part(b);
                    word = low | high << 16;
                }
            }
        }
#pragma unroll
        for (int i = 0; i < kQueriesOfWarp; ++i) {
            const int pair = warp_ + i * kChunkWarps;
            if (pair >= pairs_ || element >= dim_) continue;
            if (lane_ == 0) shared_.inverse_scales[pair] = inverse[i];
#pragma unroll
            for (int e = 0; e < 2; ++e)
#pragma unroll
                for (int part = 0; part < F16::kParts; ++part)
                    shared_.queries[column_half(element + e * 2, pair) / 2 + part * 2] =
                        words[i][e][part];
        }
    }

    __device__ void take_columns() {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const Pair pair = space_.pairs[min(column(c), pairs_ - 1)];
            columns_[c].sees = {pair.begin, pair.end};
            columns_[c].row = pair.row;
        }
    }
    __device__ void put_columns() {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const int pair = column(c);
            if (pair >= pairs_) continue;
            if (has_sums()) space_.sums[pair] = make_float2(columns_[c].largest, columns_[c].sum);
#pragma unroll
            for (int i = 0; i < kElements; ++i)
                if (element(i) < dim_)
                    space_.o[ChunkSpace::o_place(pair, element(i), dim_)] = columns_[c].o[i];
        }
    }

    __device__ Sees sees_of(const Rows& rows) const {
        Sees sees;
#pragma unroll
        for (int c = 0; c < 2; ++c)
            sees.of[c] =
                rows.pairs.has(column(c)) ? columns_[c].sees.within(now_.before) : Range{0, 0};
        const Range seen = pair_of_lane(rows.pairs).within(now_.before);
        const bool counts = !seen.is_empty();
        sees.all = {~least_of_warp(counts ? ~seen.begin : ~0),
                    least_of_warp(counts ? min(seen.end, rows.shared) : kChunk)};
        return sees;
    }

    // S of the warp's 16 keys, among the rows of the slabs from `first` on.
    __device__ void multiply_keys(float (&scores)[4], int first) {
        Tile products;
        const int row = first + warp_ * kTileSide + lane_ % 16, half = lane_ / 16;
        const int query = (min(lane_ / 4, pairs_ - 1) * 4 + lane_ % 4) * 4;
        const auto add = [&](int tile) {
            products.add(take_matrices<false>(space_.slabs, place(row, tile * 2 + half)),
                         shared_.queries.template joined<uint4>(tile * 32 * 4 + query));
        };
        const int count = dim_ / kTileSide;
        int tile = 0;
#pragma unroll 1
        for (; tile + 4 <= count; tile += 4)
#pragma unroll
            for (int i = 0; i < 4; ++i) add(tile + i);
#pragma unroll 1
        for (; tile < count; ++tile) add(tile);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float inverse = shared_.inverse_scales[min(column(i % 2), pairs_ - 1)];
            scores[i] = products.of(i) * inverse * task_.scale;
        }
    }
    // S of the warp's 16 shared positions; -inf where a column does not attend.
    __device__ void score(float (&scores)[4], const Range (&sees)[2]) {
        multiply_keys(scores, 0);
#pragma unroll
        for (int i = 0; i < 4; ++i)
            scores[i] = sees[i % 2].has(position() + i / 2 * 8) ? scores[i] : -infinity();
    }

    __device__ static void largest_of_lane(float (&largest)[2], const float (&scores)[4]) {
#pragma unroll
        for (int c = 0; c < 2; ++c)
            largest[c] = larger(scores[2 + c], larger(scores[c], -infinity()));
    }
    // Reduces the maxima over the warp's positions, and stores them for the block.
    __device__ void leave_largest(float (&largest)[2]) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
#pragma unroll
            for (int distance = 16; distance >= 4; distance /= 2)
                largest[c] = larger(__shfl_xor_sync(kAllLanes, largest[c], distance), largest[c]);
            if (lane_ < 4) space_.largest[column(c) * kChunkWarps + warp_] = largest[c];
        }
    }

    __device__ void take_largest(float (&largest)[2]) const {
#pragma unroll
        for (int c = 0; c < 2; ++c) largest[c] = space_.largest_of(column(c));
    }
    __device__ static void softmax(float (&scores)[4], const float (&largest)[2]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) scores[i] = exp_of(scores[i] - largest[i % 2]);
    }
    // Stores the two f16 parts of P as fragments. position(i) is the position of number i, or
    // kNone.
    template <class Position>
    __device__ void put_p(const float (&p)[4], const Position& position) {
        uint16_t parts[4][F16::kParts];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float rest = p[i];
#pragma unroll
            for (uint16_t& part : parts[i]) part = F16::part(rest);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int place = position(i);
            if (place == kNone) continue;
            const int half = column_half(place, column(i % 2));
#pragma unroll
            for (int part = 0; part < F16::kParts; ++part)
                shared_.p[half + part * 4] = parts[i][part];
        }
    }

    // O = V^T P and the sum of P. V of shared positions lies in rows 64 .. 127 of the slabs, V of
    // tails in rows 0 .. 63; the copies of this thread have arrived.
    __device__ void mix(const Rows& rows, const Sees& sees, const float (&largest)[2]) {
        ChunkWeight weights[2];
        if constexpr (adds)
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                float& before = columns_[c].largest;
                const float now = larger(largest[c], before);
                weights[c] = ChunkWeight(before, largest[c], now);
                if (!sees.of[c].is_empty()) before = now;
            }
        __syncthreads();
        const int first = now_.all.begin / kTileSide, end = tiles_of(now_.all.end, kTileSide);
        const int from = tiles_of(sees.all.begin, kTileSide), to = sees.all.end / kTileSide;
        Tile mixed[kOfWarp], sums;
        const auto p_of = [&](int tile) {
            return shared_.p.template joined<uint4>((tile * 32 + lane_) * 8);
        };
        const auto add_sums = [&](uint4 p) {
            constexpr unsigned kOnes = 0x3c003c00;
            if (warp_ == kSumWarp) sums.add({kOnes, kOnes, kOnes, kOnes}, p);
        };
#pragma unroll 1
        for (int tile = first; tile < end; ++tile) {
            if (tile == from)
#pragma unroll 2
                for (; tile < to; ++tile) {
                    const uint4 p = p_of(tile);
                    add_sums(p);
                    add_values(mixed, p, kChunk + tile * kTileSide + row_of_lane());
                }
            if (tile >= end) break;
            const uint4 p = p_of(tile);
            add_sums(p);
            add_of_rows(mixed, p, tile, rows);
        }
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            if (sees.of[c].is_empty()) continue;
            if constexpr (adds)
                add_up(columns_[c], weights[c], c, mixed, sums);
            else
                leave(c, largest[c], mixed, sums);
        }
    }
    // The position, among 16, of the matrix row that this lane addresses for take_matrices.
    __device__ int row_of_lane() const {
        return lane_ / 16 * 8 + lane_ % 8;
    }

    // Adds V^T P of 16 positions; `row` is the row of the slabs that this lane addresses.
    __device__ void add_values(Tile (&mixed)[kOfWarp], uint4 p, int row) {
#pragma unroll
        for (int i = 0; i < kOfWarp; ++i) {
            // Tiles beyond the head's last one repeat it, and are not stored.
            const int tile = min(warp_ + i * kChunkWarps, dim_ / kTileSide - 1);
            mixed[i].add(take_matrices<true>(space_.slabs, place(row, tile * 2 + lane_ / 8 % 2)),
                         p);
        }
    }
    // Adds V^T P of 16 positions, row by row. A position that a row does not attend to is a copy of
    // one that it does attend to, times P = 0.
    __device__ void add_of_rows(Tile (&mixed)[kOfWarp], uint4 p, int tile, const Rows& rows) {
        Tile before[kOfWarp];  // each row adds to its own columns only
#pragma unroll
        for (int i = 0; i < kOfWarp; ++i) before[i] = mixed[i];
#pragma unroll 4
        for (int r = 0; r < rows.count; ++r) {
            const int pair = rows.pairs.begin + r * task_.own_heads;
            const Range sees = Pair(space_.pairs[pair]).within(now_.before);
            const int first = tile * kTileSide;
            const int position = min(max(first + row_of_lane(), sees.begin), sees.end - 1);
            const int row = position < rows.shared ? kChunk + position
                                                   : (r << rows.span_bits) + position - rows.shared;
            // A row that attends to no position of the chunk multiplies any, and the result is
            // dropped.
            Tile row_o[kOfWarp];
#pragma unroll
            for (int i = 0; i < kOfWarp; ++i) row_o[i] = before[i];
            add_values(row_o, p, sees.is_empty() ? kChunk : row);
            const Range row_pairs{pair, pair + task_.own_heads};
            const bool sees_it = sees.begin < first + kTileSide && sees.end > first;
#pragma unroll
            for (int i = 0; i < kOfWarp; ++i)
#pragma unroll
                for (int part = 0; part < F16::kParts; ++part)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        if (sees_it && row_pairs.has(column(e % 2)))
                            mixed[i].parts[part][e] = row_o[i].parts[part][e];
        }
    }

    // The head's element that a lane has as number i.
    __device__ int element(int i) const {
        return (warp_ + i / 2 * kChunkWarps) * kTileSide + i % 2 * 8 + lane_ / 4;
    }
    __device__ bool has_sums() const {
        return warp_ == kSumWarp && lane_ < 4;
    }

    // Merges the chunk into those before it.
    __device__ static void add_up(Column& to, const ChunkWeight& weight, int c,
                                  const Tile (&mixed)[kOfWarp], const Tile& sums) {
        to.sum = weight.add(to.sum, sums.of(c));  // valid only in the warp that has the sums
#pragma unroll
        for (int i = 0; i < kElements; ++i)
            to.o[i] = weight.add(to.o[i], mixed[i / 2].of(i % 2 * 2 + c));
    }
    __device__ void leave(int c, float largest, const Tile (&mixed)[kOfWarp], const Tile& sums) {
        const unsigned at = Pair(space_.pairs[column(c)]).place_of(now_.before);
        if (has_sums()) {
            task_.partials.max[at] = largest;
            task_.partials.sum[at] = sums.of(c);
        }
        float* const to = task_.partials.o + size_t(at) * unsigned(dim_);
#pragma unroll
        for (int i = 0; i < kElements; ++i)
            if (element(i) < dim_) to[element(i)] = mixed[i / 2].of(i % 2 * 2 + c);
    }

    TilesSpace& shared_;
    Column columns_[2];
    ChunkPlace next_{};  // the next chunk, if it is shared; else empty
    const int warp_ = thread_ / 32, lane_ = thread_ % 32;
};

}  // namespace aerie::cuda
