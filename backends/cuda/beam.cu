// One level of EAGLE-2's expansion (docs/drafting.md section 3), by one block of threads: the
// table, the next frontier and its rows.
#include "cuda/backend.h"
#include "cuda/device/logits.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

struct BeamView {
    View<const int32_t> ids;
    View<const float> log_probs;
    const Row* rows;
    int32_t* frontier;
    Candidate* table;
    const int32_t* selection;  // null: the best by value
    int32_t* parent_row;
    Row* next;  // may be the same memory as `rows`
    int width, table_offset, next_slot;
    bool from_root, sum_values;
};

__device__ void append_level(const BeamView& step) {
    const int k = step.ids.cols;
    for (int i = int(threadIdx.x); i < step.ids.rows * k; i += kChoiceThreads) {
        const int f = i / k, parent = step.from_root ? -1 : step.frontier[f];
        Candidate& c = step.table[step.table_offset + i];
        c.token = step.ids[f][i % k];
        c.parent = parent;
        c.log_prob = step.log_probs[f][i % k];
        c.value = c.log_prob;
        if (parent >= 0 && step.sum_values) c.value += step.table[parent].value;
    }
}

__device__ Row extend(const BeamView& step, int parent, int rank, int token) {
    Row next = step.rows[parent];
    const int depth = next.position - next.prefix;
    ++next.position;
    if (step.from_root)
        next.prefix = next.position;
    else
        next.path[depth] = next.slot;
    next.token = token;
    next.slot = next.prefix + step.next_slot + rank;
    return next;
}

__global__ void beam_kernel(BeamView step) {
    __shared__ BlockReducer::Space space;
    __shared__ SharedArray<int, kMaxFrontier> chosen;
    BlockReducer reducer(space);
    const int thread = int(threadIdx.x), k = step.ids.cols, count = step.ids.rows * k;
    append_level(step);
    __syncthreads();
    const Candidate* level = step.table + step.table_offset;
    if (step.selection) {
        if (thread < step.width) chosen[thread] = step.selection[thread];
    } else {
        uint64_t before = ~uint64_t(0);
        for (int rank = 0; rank < step.width; ++rank) {
            uint64_t best = 0;
            for (int i = thread; i < count; i += kChoiceThreads) {
                const uint64_t key = order_key(level[i].value, i);
                if (key < before && key > best) best = key;
            }
            before = reducer.largest(best);
            if (thread == 0) chosen[rank] = id_of(before);
        }
    }
    __syncthreads();
    Row next;
    const bool mine = thread < step.width;
    if (mine) {
        const int candidate = chosen[thread];
        next = extend(step, candidate / k, thread, level[candidate].token);
        step.parent_row[thread] = candidate / k;
        step.frontier[thread] = step.table_offset + candidate;
    }
    __syncthreads();  // all have read `rows`
    if (mine) step.next[thread] = next;
}

}  // namespace

template <>
void CudaBackend::enqueue(const Beam& step) {
    const int width = step.next.count();
    BeamView view{.ids = step.ids,
                  .log_probs = step.log_probs,
                  .rows = row<const Row>(step.rows.block, 0),
                  .frontier = row<int32_t>(step.frontier, 0),
                  .table = row<Candidate>(step.table, 0),
                  .selection = nullptr,
                  .parent_row = nullptr,
                  .next = nullptr,
                  .width = width,
                  .table_offset = step.table_offset,
                  .next_slot = step.next_slot,
                  .from_root = step.from_root,
                  .sum_values = step.sum_values};
    if (width > 0) {
        if (step.selection) view.selection = row<const int32_t>(step.selection, 0);
        view.parent_row = row<int32_t>(step.parent_row, 0);
        view.next = row<Row>(step.next.block, 0);
    }
    launch(beam_kernel, {dim3(1), dim3(kChoiceThreads), *queue_, "beam"}, view);
}

}  // namespace aerie::cuda
