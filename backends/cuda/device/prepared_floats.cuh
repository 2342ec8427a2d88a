// The only row of a matmul of float weights, which each block makes ready for itself (see
// prepared_row.cuh).
#pragma once

#include "cuda/device/columns.cuh"
#include "cuda/device/prepared_row.cuh"
#include "cuda/device/stream.cuh"

namespace aerie::cuda {

// Takes the place of FloatColumns.
template <class Format>
class PreparedFloats {
    // Lanes with different words: all tokens are the same.
    static constexpr int kLanes = kFloatTileCols / 4;
    // K tiles at a time: a thread packs a lane's words of one.
    static constexpr int kPartTiles = kBlockThreads / kLanes;
    static constexpr int kAtOnce = 16;  // elements that a thread loads at once for the amax

  public:
    static constexpr int kPartSteps = kPartTiles / kStepTiles;
    static constexpr int kTiles = 1, kRowTiles = kBlockTiles;
    static constexpr bool kMakesParts = true;
    using Step = WeightStep<kBlockTiles>;
    // A part of the row takes its room from the ring, since Turing has 64 KB per block.
    static constexpr int kWords = kPartTiles * Format::kParts * kLanes;
    using Ring = cuda::Ring<Step, kRingBytes - kWords * sizeof(uint2)>;
    struct Space {
        SharedArray<uint2, kWords> columns;  // one part of the row
        NormedRows::Space norm;
        SharedArray<unsigned, kBlockTiles> largest;
    };
#ifdef __CUDACC__  // arrays of the execution model are larger
    static_assert(sizeof(Space) + Ring::kBytes + kBesideRingBytes <= kBlockBytes);
#endif

    __device__ PreparedFloats(Space& space, const RowTask& row) : space_(space), row_(row) {}

    __device__ void begin() {
        if (row_.is_normed()) factor_ = row_.rows.factor(0, space_.norm);
        if (Format::kParts == 2) scale_ = scale_of<kBlockThreads>(thread_amax(), space_.largest);
    }
    __device__ void begin_at(int) const {}
    __device__ void copy(Step&, int) const {}
    __device__ void make_part(int part) {
        __syncthreads();  // all have read the part before
        make(part);
    }
    __device__ uint2 get(Step&, int step, int, int k, int part) const {
        const int tile = step % kPartSteps * kStepTiles + k;
        const int place = tile * Format::kParts + part;
        return space_.columns[place * kLanes + int(threadIdx.x) % kLanes];
    }
    __device__ float inverse_scale(int) const {
        return inverse_of_power(scale_);
    }

  private:
    // The amax of this thread's elements, or of its part of `amax`.
    __device__ unsigned thread_amax() const {
        unsigned most = 0;
        const int count = row_.amax ? row_.amax_count : row_.rows.x.cols;
#pragma unroll 1
        for (int first = int(threadIdx.x); first < count; first += kAtOnce * kBlockThreads) {
            const auto place = [&](int i) { return first + i * kBlockThreads; };
            float values[kAtOnce];
            if (row_.amax)
#pragma unroll
                for (int i = 0; i < kAtOnce; ++i) values[i] = row_.amax[min(place(i), count - 1)];
            else
                row_.take(values, factor_, place);
#pragma unroll
            for (float value : values) most = max(most, magnitude_of(value));
        }
        return most;
    }

    // Packs a part of the row; each thread packs a lane's words of a K tile.
    __device__ void make(int part) {
        const int lane = int(threadIdx.x) % kLanes, tile = int(threadIdx.x) / kLanes;
        const int first = (part * kPartTiles + tile) * kFloatTileCols + lane * 2;
        float values[4];
        row_.take(values, factor_, [&](int i) { return first + i / 2 * 8 + i % 2; });
        for (float& value : values) value = value * scale_;
#pragma unroll
        for (int p = 0; p < Format::kParts; ++p) {
            unsigned bits[4];
#pragma unroll
            for (int i = 0; i < 4; ++i) bits[i] = Format::part(values[i]);
            const int place = tile * Format::kParts + p;
            space_.columns[place * kLanes + lane] =
                make_uint2(bits[0] | bits[1] << 16, bits[2] | bits[3] << 16);
        }
    }

    Space& space_;
    const RowTask& row_;
    float factor_ = 1, scale_ = 1;
};

}  // namespace aerie::cuda
