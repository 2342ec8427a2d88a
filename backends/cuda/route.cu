// Routes rows to experts: finds the best experts of each row, one block per row; then sorts the
// places of all rows by expert, one warp per expert. A place is a row and one of its experts.
#include "cuda/backend.h"
#include "cuda/device/logits.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kRouteThreads = 128;

__global__ void route_kernel(View<int32_t> ids, View<float> weights, View<const float> logits,
                             bool normalised) {
    __shared__ SharedArray<uint64_t, kMaxExperts> keys;
    __shared__ SharedArray<int, kMaxChosen> chosen;
    const int r = int(blockIdx.x), thread = int(threadIdx.x), experts = logits.cols, k = ids.cols;
    const float* x = logits[r];
    for (int e = thread; e < experts; e += kRouteThreads) keys[e] = order_key(x[e], e);
    __syncthreads();
    for (int e = thread; e < experts; e += kRouteThreads) {
        const uint64_t key = keys[e];
        int rank = 0;
        for (int other = 0; other < experts; ++other) rank += keys[other] > key;
        if (rank < k) chosen[rank] = e;
    }
    __syncthreads();
    if (thread >= 32) return;
    const float best = x[chosen[0]];
    float sum = 0;
    for (int e = thread; thread < kLanes && e < experts; e += kLanes)
        sum = sum + exp_of(x[e] - best);
    const float inverse_sum = reciprocal(__shfl_sync(kAllLanes, sum_of_lanes(sum), 0));
    const int chosen_expert = thread < k ? chosen[thread] : 0;
    float weight = exp_of(x[chosen_expert] - best) * inverse_sum, total = 0;
    for (int i = 0; i < k; ++i) total = total + __shfl_sync(kAllLanes, weight, i);
    if (normalised) weight = weight * reciprocal(total);
    if (thread >= k) return;
    ids[r][thread] = chosen_expert;
    weights[r][thread] = weight;
}

__device__ int tiles_for(int places) {
    return (places + kExpertTileRows - 1) / kExpertTileRows;
}

__global__ void __launch_bounds__(32)
    route_places_kernel(int32_t* order, ExpertTile* tiles, int most_tiles, View<const int32_t> ids,
                        int experts) {
    __shared__ SharedArray<int, kMaxExperts> counts;
    const int lane = int(threadIdx.x), expert = int(blockIdx.x), k = ids.cols;
    const int places = ids.rows * k;
    const auto expert_of = [&](int place) { return ids[place / k][place % k]; };
    for (int e = lane; e < experts; e += 32) counts[e] = 0;
    for (int place = 0; place < places; ++place) {
        const int chosen = expert_of(place);
        if (chosen % 32 == lane)
            counts[chosen] = counts[chosen] + 1;  // no other lane counts this expert
    }
    __syncwarp();
    int first = 0, tile = 0;
    for (int e = 0; e < expert; ++e) {
        first += counts[e];
        tile += tiles_for(counts[e]);
    }
    const int count = counts[expert], expert_tiles = tiles_for(count);
    for (int i = lane; i < expert_tiles; i += 32)
        tiles[tile + i] = {expert, first + i * kExpertTileRows,
                           min(kExpertTileRows, count - i * kExpertTileRows)};
    if (expert + 1 == experts)
        for (int i = tile + expert_tiles + lane; i < most_tiles; i += 32) tiles[i] = {0, 0, 0};
    if (count == 0) return;
    for (int from = 0; from < places; from += 32) {
        const int place = from + lane;
        const bool here = place < places && expert_of(place) == expert;
        const unsigned all = __ballot_sync(kAllLanes, here);
        if (here) order[first + __popc(all & ((1u << lane) - 1))] = place;
        first += __popc(all);
    }
}

}  // namespace

template <>
void CudaBackend::enqueue(const Route& op) {
    const Routing& to = op.routing;
    launch(route_kernel, {dim3(unsigned(to.rows())), dim3(kRouteThreads), *queue_, "route"}, to.ids,
           to.weights, op.logits, op.normalised);
    launch(route_places_kernel, {dim3(unsigned(op.logits.cols)), dim3(32), *queue_, "route_places"},
           row<int32_t>(to.order, 0), row<ExpertTile>(to.tiles, 0), to.tiles.rows, to.ids,
           op.logits.cols);
}

}  // namespace aerie::cuda
