// The only row of a matmul of quantised weights, which each block makes ready for itself (see
// prepared_row.cuh).
#pragma once

#include "cuda/device/prepared_row.cuh"
#include "cuda/device/quant_product.cuh"
#include "cuda/device/quantise.cuh"

namespace aerie::cuda {

// Takes the place of QuantColumns.
template <class Format>
class PreparedGroups {
    static constexpr int kPartGroups = kSumPart / kGroup, kWords = kGroup / 4;
    static constexpr int kEach = kPartGroups / kBlockTiles;  // groups of a warp
    static constexpr int kPartSteps = kPartGroups / kStepGroups;

  public:
    static constexpr int kTiles = 1;
    static constexpr bool kMakesParts = true;
    using Step = WeightWords<Format>;
    struct Space {
        SharedArray<unsigned, kPartGroups * kWords> steps;  // quantised values of a part
        SharedArray<uint2, kPartGroups> heads;              // scales and sums, as in BlockI8G32
        NormedRows::Space norm;
    };
#ifdef __CUDACC__  // arrays of the execution model are larger
    static_assert(sizeof(Space) + Ring<Step>::kBytes + kBesideRingBytes <= kBlockBytes);
#endif

    __device__ PreparedGroups(Space& space, const RowTask& row) : space_(space), row_(row) {}

    __device__ void begin() {
        if (row_.is_normed()) factor_ = row_.rows.factor(0, space_.norm);
    }
    __device__ void copy(Step&, int) const {}
    __device__ void make_part(int part) {
        __syncthreads();  // all have read the part before
        make(part);
    }
    __device__ GroupColumns get(Step&, int step, int group, int) const {
        const int place = step % kPartSteps * kStepGroups + group, lane = int(threadIdx.x) % 4;
        const uint2 head = space_.heads[place];
        const float scale = __uint_as_float(head.x);
        GroupColumns columns = {{}, make_float2(scale, scale), {}};
        if constexpr (Format::kLayout.scales == Scales::of_halves)
            columns.steps = make_uint2(space_.steps[place * kWords + lane],
                                       space_.steps[place * kWords + 4 + lane]);
        else
            columns.steps = space_.steps.template joined<uint2>(place * kWords + lane * 2);
        if constexpr (Format::kLayout.has_least()) {
            const float sum = sum_of_halves(head.y);
            columns.sums = make_float2(sum, sum);
        }
        return columns;
    }

  private:
    __device__ void make(int part) {
        const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
        float values[kEach];
        row_.take(values, factor_, [&](int j) {
            return part * kSumPart + (j * kBlockTiles + warp) * kGroup + lane;
        });
        const QuantisedGroups<kEach> groups(values);
#pragma unroll
        for (int j = 0; j < kEach; ++j) {
            const int place = j * kBlockTiles + warp;
            const unsigned word = groups.word(j), sums = groups.word_of_sums(j);
            if (lane % 4 == 0) space_.steps[place * kWords + lane / 4] = word;
            if (lane == 0)
                space_.heads[place] = make_uint2(__float_as_uint(groups.scales[j]), sums);
        }
    }

    Space& space_;
    const RowTask& row_;
    float factor_ = 1;
};

}  // namespace aerie::cuda
