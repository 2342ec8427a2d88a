// A chunk of attention by matrix instructions, of keys and values in f16: keys times queries, then
// turned values times exp(score - maximum), each for up to 8 pairs of a row and a query head, its
// columns. Queries and exponentials are two f16 parts, as what a matmul reads is. The sum of
// exponentials is the product with values that are all 1.
//
// A pair's bits do not depend on the others: a column is by itself, a key is a row of a tile
// wherever it lies, and the mix goes by 16 positions of their numbers. Where pairs see different
// ones of these, or have them in different rows of the cache, each row multiplies its own.
#pragma once

#include "cuda/device/chunk_block.cuh"
#include "cuda/device/columns.cuh"

namespace aerie::cuda {

constexpr int kTileSide = 16;  // positions, or elements of a head
constexpr int kChunkTiles = kChunk / kTileSide;
constexpr int kSlabTiles = kMostSlabElements / kTileSide;
static_assert(kChunkTiles == kChunkWarps && kMostPairs == kTokenTile);

struct TilesSpace : ChunkSpace {
    // As lanes take them: words of the first part and of the second, by twos.
    SharedArray<unsigned, kSlabTiles * 32 * 4> queries;
    SharedArray<uint16_t, kChunkTiles * 32 * 8> shares;  // the exponentials
    SharedArray<float, kMostPairs> inverse_scales;       // of queries
};

// Where the first part of an element of a column lies, in halves of words. The second is two words
// further.
__device__ inline int column_half(int element, int column) {
    const int word = element % kTileSide / 2;
    const int lane = column * 4 + word % 4;
    return ((element / kTileSide * 32 + lane) * 4 + word / 4) * 2 + element % 2;
}

// `adds`: a block has all chunks of its pairs, and adds them up.
template <bool adds>
class ChunkTiles : ChunkBlock<uint16_t, true> {
    static constexpr int kOfWarp = kSlabTiles / kChunkWarps;  // tiles of 16 elements, of the mix
    static constexpr int kElements = 2 * kOfWarp;             // of a lane
    static constexpr int kQueriesOfWarp = kMostPairs / kChunkWarps;

    // Of 16 rows and 8 columns: a lane has two rows of two columns.
    struct Tile {
        float parts[F16::kParts][4] = {};

        __device__ void add(uint4 a, uint4 b) {
            mma_f16(parts[0], a, {b.x, b.y});
            mma_f16(parts[1], a, {b.z, b.w});
        }
        __device__ float of(int i) const { return parts[0][i] + parts[1][i]; }
    };
    // What a lane has of a pair: its two rows of the warp's tiles, and what became of them so far.
    struct Column {
        Range sees = {0, 0};
        int row = 0;
        float largest = -infinity(), sum = 0, mix[kElements] = {};
    };
    // What a lane's two columns see of the chunk: nothing, where they are not among those that are
    // taken now. And what lies alike for all that see any of it, and all see.
    struct Sees {
        Range of[2], all;
    };
    // Some rows, and where in shared memory their positions of a chunk lie: `shared` of them alike
    // for all, in one half of a slab, and then each row's own, its tail, side by side in the other
    // half, 1 << span_bits a row.
    struct Rows {
        Range pairs;
        int count, shared, span_bits;

        // Whether a place among the tails is such a row's. Rows that are not among these have some,
        // too: what they get is not kept.
        __device__ bool has(int row, int place) const {
            return (row & (count - 1)) == place >> span_bits && position(place) < kChunk;
        }
        __device__ int position(int place) const {
            return shared + (place & ((1 << span_bits) - 1));
        }
    };

  public:
    __device__ ChunkTiles(TilesSpace& space, const AttentionTask& task)
        : ChunkBlock(space, task, adds), own_(space) {}

    // Blocks along z share the chunks: those that lie alike for all rows, then those of as many
    // rows as there is room for, each with a tail.
    __device__ void run() {
        const Chunks chunks = name_pairs();
        const int together = chunks.alike - chunks.all.begin, deep = int(gridDim.z);
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
        const int apart = row_bits - bits;  // times for a chunk
        const int items = together + ((chunks.all.end - chunks.alike) << apart);
        for (; item < items; item += deep) {
            const int single = item - together, chunk = single >> apart;
            attend_tails(chunks.alike + chunk, chunks.fork, (single - (chunk << apart)) << bits,
                         bits);
        }
        if (adds) put_columns();
    }

  private:
    static constexpr int kSumWarp = kChunkWarps - 1;
    static constexpr int kNone = -1;

    // Chunk now_, for all pairs. Its keys have been asked for.
    __device__ void attend() {
        if (now_.all.is_empty()) return;
        const Rows rows{{0, pairs_}, task_.own_rows, kChunk, 0};
        __syncthreads();  // of what the chunk before has read
        copy_values(0, place(kChunk + copied_, quad_), [&](int i) { return now_.row(i); });
        commit_copies();
        const Sees sees = sees_of(rows);
        wait_for_copies<1>();
        __syncthreads();
        float scores[4], largest[2];
        score(scores, sees.of);
        largest_of_lane(largest, scores);
        leave_largest(largest);
        __syncthreads();  // keys have been used, too
        ask_for_next_keys();
        take_largest(largest);
        soften(scores, largest);
        put_shares(scores, [&](int i) { return position() + i / 2 * 8; });
        wait_for_copies<1>();
        mix(rows, sees, largest);
    }

    // A chunk in which some positions lie alike, those before `fork`, for 1 << bits rows from
    // `first` on.
    __device__ void attend_tails(int chunk, int fork, int first, int bits) {
        const int before = chunk * kChunk, count = 1 << bits, pair = first * task_.own_heads;
        const Rows rows{{pair, pair + (task_.own_heads << bits)},
                        count,
                        min(max(fork - before, 0), kChunk),
                        kChunkBits - bits};
        now_ = {before, {0, 0}, 0};
        now_.all = seen_of(rows.pairs);
        if (now_.all.is_empty()) return;
        __syncthreads();  // of what the chunk before has read
        name_cached(rows);
        __syncthreads();
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
        score(scores, seen_alike);
        multiply_keys(tails, kChunk);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int its = position() + i / 2 * 8;
            tails[i] = rows.has(columns_[i % 2].row, its) && sees.of[i % 2].has(rows.position(its))
                           ? tails[i]
                           : -infinity();
        }
        largest_of_lane(largest, scores);
        largest_of_lane(of_tails, tails);
#pragma unroll
        for (int c = 0; c < 2; ++c) largest[c] = larger(of_tails[c], largest[c]);
        leave_largest(largest);
        __syncthreads();  // keys have been used, too
        copy_values(0, place(kChunk + copied_, quad_), named(0));
        copy_values(0, place(copied_, quad_), named(kChunk));
        commit_copies();
        take_largest(largest);
        soften(scores, largest);
        soften(tails, largest);
        const Range of_tail{rows.shared, rows.shared + (1 << rows.span_bits)};
        put_shares(scores, [&](int i) {
            const int its = position() + i / 2 * 8;
            return of_tail.has(its) ? kNone : its;
        });
        put_shares(tails, [&](int i) {
            const int its = position() + i / 2 * 8;
            return rows.has(columns_[i % 2].row, its) ? rows.position(its) : kNone;
        });
        wait_for_copies<0>();
        mix(rows, sees, largest);
    }

    // For how many rows there is room if the longest tail has so many positions.
    __device__ static int tail_room_bits(int length) {
        return length < 1 || length > kChunk ? 0 : kChunkBits - 32 + __clz(length - 1);
    }
    // Of what lies alike, then of tails. What a row does not see is a copy of what it does.
    __device__ void name_cached(const Rows& rows) {
        const int place = thread_ % kChunk;
        size_t row = 0;
        if (thread_ < kChunk && rows.shared > 0) {
            const int its = min(max(place, now_.all.begin), rows.shared - 1);
            row = task_.cache.row(sequence_, now_.before + its);
        } else {
            const Pair its =
                space_.pairs[rows.pairs.begin + (place >> rows.span_bits) * task_.own_heads];
            const int position = now_.before + rows.position(place);
            if (its.end > 0)
                row = task_.cache.row(its.sequence,
                                      slot_of(its, min(max(position, its.begin), its.end - 1)));
        }
        space_.cached[thread_] = unsigned(row);
    }
    __device__ void ask_for_next_keys() {
        if (!next_.all.is_empty())
            copy_keys(0, place(copied_, quad_), [&](int i) { return next_.row(i); });
        commit_copies();  // also where there is nothing: the count of groups must be right
    }

    // Of a slab's rows, the second 64 of them behind the first. Quads lie so that those of 8 rows
    // one after the other do not meet in a bank.
    __device__ static int place(int row, int quad) {
        static_assert(kCopied % 8 == 0);
        return row * kSlabQuads + (quad ^ row % 8);
    }
    // A lane has numbers i of a tile: columns 0 and 1 of a row, then of the row 8 further.
    __device__ int column(int c) const {
        return lane_ % 4 * 2 + c;
    }
    __device__ int position() const {
        return warp_ * kTileSide + lane_ / 4;
    }

    // A warp has two queries, a lane four elements of each.
    __device__ void take_queries() {
        const int element = lane_ * 4;
        float values[kQueriesOfWarp][4] = {}, inverse[kQueriesOfWarp];
        unsigned words[kQueriesOfWarp][2][F16::kParts];
#pragma unroll
        for (int i = 0; i < kQueriesOfWarp; ++i) {
            const Pair its = space_.pairs[min(warp_ + i * kChunkWarps, pairs_ - 1)];
            const float* query = task_.qkv.data + its.query + element;
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
            if (lane_ == 0) own_.inverse_scales[pair] = inverse[i];
#pragma unroll
            for (int e = 0; e < 2; ++e)
#pragma unroll
                for (int part = 0; part < F16::kParts; ++part)
                    own_.queries[column_half(element + e * 2, pair) / 2 + part * 2] =
                        words[i][e][part];
        }
    }

    __device__ void take_columns() {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
            const Pair its = space_.pairs[min(column(c), pairs_ - 1)];
            columns_[c].sees = {its.begin, its.end};
            columns_[c].row = its.row;
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
                    space_.mix[ChunkSpace::mix_place(pair, element(i), dim_)] = columns_[c].mix[i];
        }
    }

    __device__ Sees sees_of(const Rows& rows) const {
        Sees sees;
#pragma unroll
        for (int c = 0; c < 2; ++c)
            sees.of[c] =
                rows.pairs.has(column(c)) ? columns_[c].sees.within(now_.before) : Range{0, 0};
        const Range its = pair_of_lane(rows.pairs).within(now_.before);
        const bool counts = !its.is_empty();
        sees.all = {~least_of_warp(counts ? ~its.begin : ~0),
                    least_of_warp(counts ? min(its.end, rows.shared) : kChunk)};
        return sees;
    }

    // Of the warp's 16 keys of those from `first` on.
    __device__ void multiply_keys(float (&scores)[4], int first) {
        Tile products;
        const int row = first + warp_ * kTileSide + lane_ % 16, half = lane_ / 16;
        const int query = (min(lane_ / 4, pairs_ - 1) * 4 + lane_ % 4) * 4;
        const auto add = [&](int tile) {
            products.add(take_matrices<false>(space_.slabs, place(row, tile * 2 + half)),
                         own_.queries.template joined<uint4>(tile * 32 * 4 + query));
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
            const float inverse = own_.inverse_scales[min(column(i % 2), pairs_ - 1)];
            scores[i] = products.of(i) * inverse * task_.scale;
        }
    }
    // Of its 16 positions, where they lie alike.
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
    // Of the warp's positions.
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
    __device__ static void soften(float (&scores)[4], const float (&largest)[2]) {
#pragma unroll
        for (int i = 0; i < 4; ++i) scores[i] = exp_of(scores[i] - largest[i % 2]);
    }
    // position(i) is that of a share, or kNone.
    template <class Position>
    __device__ void put_shares(const float (&shares)[4], const Position& position) {
        uint16_t parts[4][F16::kParts];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            float rest = shares[i];
#pragma unroll
            for (uint16_t& part : parts[i]) part = F16::part(rest);
        }
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int its = position(i);
            if (its == kNone) continue;
            const int half = column_half(its, column(i % 2));
#pragma unroll
            for (int part = 0; part < F16::kParts; ++part)
                own_.shares[half + part * 4] = parts[i][part];
        }
    }

    // Values of positions before `shared` lie in the second 64 rows of a slab; tails in the first.
    // They have come, for this thread.
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
        const auto shares_of = [&](int tile) {
            return own_.shares.template joined<uint4>((tile * 32 + lane_) * 8);
        };
        const auto add_sums = [&](uint4 shares) {
            constexpr unsigned kOnes = 0x3c003c00;
            if (warp_ == kSumWarp) sums.add({kOnes, kOnes, kOnes, kOnes}, shares);
        };
#pragma unroll 1
        for (int tile = first; tile < end; ++tile) {
            if (tile == from)
#pragma unroll 2
                for (; tile < to; ++tile) {
                    const uint4 shares = shares_of(tile);
                    add_sums(shares);
                    add_values(mixed, shares, kChunk + tile * kTileSide + row_of_lane());
                }
            if (tile >= end) break;
            const uint4 shares = shares_of(tile);
            add_sums(shares);
            add_of_rows(mixed, shares, tile, rows);
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
    // A lane names these for take_matrices: a row of 8 elements of a position.
    __device__ int row_of_lane() const {
        return lane_ / 16 * 8 + lane_ % 8;
    }

    // Of 16 positions, of which the lane names a row in shared memory.
    __device__ void add_values(Tile (&mixed)[kOfWarp], uint4 shares, int row) {
#pragma unroll
        for (int i = 0; i < kOfWarp; ++i) {
            // Beyond the last one: that one again, which is not kept.
            const int tile = min(warp_ + i * kChunkWarps, dim_ / kTileSide - 1);
            mixed[i].add(take_matrices<true>(space_.slabs, place(row, tile * 2 + lane_ / 8 % 2)),
                         shares);
        }
    }
    // Of 16 positions, row by row; what a row does not see is a copy of what it does, times 0.
    __device__ void add_of_rows(Tile (&mixed)[kOfWarp], uint4 shares, int tile, const Rows& rows) {
        Tile before[kOfWarp];  // what a row adds is for its columns alone
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
            // One that sees nothing of the chunk multiplies what there is, and none of it is kept.
            Tile its[kOfWarp];
#pragma unroll
            for (int i = 0; i < kOfWarp; ++i) its[i] = before[i];
            add_values(its, shares, sees.is_empty() ? kChunk : row);
            const Range own{pair, pair + task_.own_heads};
            const bool sees_it = sees.begin < first + kTileSide && sees.end > first;
#pragma unroll
            for (int i = 0; i < kOfWarp; ++i)
#pragma unroll
                for (int part = 0; part < F16::kParts; ++part)
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        if (sees_it && own.has(column(e % 2)))
                            mixed[i].parts[part][e] = its[i].parts[part][e];
        }
    }

    // A lane's element number i.
    __device__ int element(int i) const {
        return (warp_ + i / 2 * kChunkWarps) * kTileSide + i % 2 * 8 + lane_ / 4;
    }
    __device__ bool has_sums() const {
        return warp_ == kSumWarp && lane_ < 4;
    }

    // The chunk comes to those before it.
    __device__ static void add_up(Column& to, const ChunkWeight& weight, int c,
                                  const Tile (&mixed)[kOfWarp], const Tile& sums) {
        to.sum = weight.add(to.sum, sums.of(c));  // of the warp that has them
#pragma unroll
        for (int i = 0; i < kElements; ++i)
            to.mix[i] = weight.add(to.mix[i], mixed[i / 2].of(i % 2 * 2 + c));
    }
    __device__ void leave(int c, float largest, const Tile (&mixed)[kOfWarp], const Tile& sums) {
        const unsigned at = Pair(space_.pairs[column(c)]).place_of(now_.before);
        if (has_sums()) {
            task_.partials.max[at] = largest;
            task_.partials.sum[at] = sums.of(c);
        }
        float* const to = task_.partials.mix + size_t(at) * unsigned(dim_);
#pragma unroll
        for (int i = 0; i < kElements; ++i)
            if (element(i) < dim_) to[element(i)] = mixed[i / 2].of(i % 2 * 2 + c);
    }

    TilesSpace& own_;
    Column columns_[2];
    ChunkPlace next_{};  // the chunk that is next, if it lies alike for all; or empty
    const int warp_ = thread_ / 32, lane_ = thread_ % 32;
};

}  // namespace aerie::cuda
