// Choices from rows of logits: sample and top_k. One block per row.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/device/last_block.cuh"
#include "cuda/device/logits.cuh"
#include "cuda/device/ptx.cuh"
#include "cuda/launch.h"
#include "cuda/scratch.h"

namespace aerie::cuda {

namespace {

constexpr int kSoftmaxWidth = 10;  // candidates in the softmax of log-probabilities with noise
static_assert(kPassRows * sizeof(LogitRow) <= kRowStateBytes);

// Tokens of a drafted row's path below the root, its own included.
struct PathTokens {
    SharedArray<int32_t, kMaxDepth>& tokens;
    int count = 0;

    // All threads of the block call this; a barrier must follow.
    __device__ void load(const View<const int32_t>& rows, int index) {
        const Row& last = *reinterpret_cast<const Row*>(rows[index]);
        count = max(last.position - last.prefix, 0);
        const int i = int(threadIdx.x) + 1;  // in the path; `seen` counts the root
        if (i > count) return;
        const int place = i < count ? index - (last.slot - last.path[i]) : index;
        tokens[i - 1] = reinterpret_cast<const Row*>(rows[place])->token;
    }
    __device__ int times(int token) const {
        int times = 0;
        for (int i = 0; i < count; ++i) times += tokens[i] == token;
        return times;
    }
};

// Logits after penalties and mask. A forbidden token is NaN: it ranks below -inf and is never
// chosen. `rows` are those of the whole choice, if some are drafted.
__global__ void edit_kernel(View<float> out, View<const float> logits, RulesView rules,
                            View<const int32_t> mask, const int32_t* id_map,
                            View<const int32_t> rows, int first_row) {
    __shared__ SharedArray<int32_t, kMaxDepth> tokens;
    const int r = int(blockIdx.x);
    const RowChoice rule = rules.of(r);
    PathTokens path{tokens};
    if (rules.seen.data && rows.data) path.load(rows, first_row + r);
    __syncthreads();
    for (int id = int(threadIdx.x); id < out.cols; id += kChoiceThreads) {
        const int token = id_map ? id_map[id] : id;
        float logit = logits[r][id];
        if (rules.seen.data) {
            const int32_t seen = rules.seen[rule.sequence][token] + path.times(token) * kPutOut;
            if (seen != 0) logit = penalised(logit, rule, seen);
        }
        if (mask.data && !(uint32_t(mask[r][token / 32]) >> (token % 32) & 1))
            logit = not_a_number();
        out[r][id] = logit;
    }
}

const int32_t* ids_of(const Choice& choice) {
    return choice.id_map ? row<const int32_t>(choice.id_map, 0) : nullptr;
}

// Calls body(logits, rules, first row) for some rows at a time, with penalties and mask applied.
template <class Body>
void for_edited_rows(const Choice& choice, const Rows& rows, float* space, Queue& queue,
                     const Body& body) {
    for (int first = 0; first < choice.logits.rows; first += kPassRows) {
        const int count = std::min(kPassRows, choice.logits.rows - first);
        const RulesView rules(choice.rules, first, count);
        View<float> logits(choice.logits.row_range(first, count));
        if (choice.rules.seen || choice.mask) {
            const View<float> from = logits;
            logits.data = space;
            logits.stride = size_t(logits.cols);
            const Tensor mask = choice.mask ? choice.mask.row_range(first, count) : Tensor{};
            launch(edit_kernel, {dim3(unsigned(count)), dim3(kChoiceThreads), queue, "edit"},
                   logits, View<const float>{from}, rules, mask, ids_of(choice), rows.block, first);
        }
        body(View<const float>{logits}, rules, first);
    }
}

__global__ void sample_kernel(int32_t* ids, View<const float> logits, RulesView rules,
                              View<const int32_t> rows, View<const float> noise) {
    __shared__ BlockReducer::Space space;
    BlockReducer reducer(space);
    const int r = int(blockIdx.x);
    const Row& place = *reinterpret_cast<const Row*>(rows[r]);
    if (place.slot < 0) return;
    const RowChoice rule = noise.data ? rules.of(r) : RowChoice{};
    const LogitRow row = processed_row(logits[r], logits.cols, rule, reducer);
    int chosen = row.top_id;
    if (row.temperature > 0) {
        const float* noise_row = noise[rule.noise + place.position - place.prefix];
        uint64_t best = 0;
        for (int id = int(threadIdx.x); id < row.vocab; id += kChoiceThreads) {
            const float z = (row.kept(id) - row.top) * row.scale + noise_row[id];
            const uint64_t key = order_key(z, id);
            if (key > best) best = key;
        }
        chosen = id_of(reducer.largest(best));
    }
    if (threadIdx.x == 0) ids[r] = chosen;
}

// top_k takes three kernels. 1. With noise: the filters of each row as a whole. 2. The best
// candidates of each slice of a row. 3. The mass of each slice, relative to the best logit; then
// the last block of a row merges its slices.
struct TopKView {
    View<const float> logits;
    RulesView rules;
    const float* noise;     // by target id; null: rank by logit
    const int32_t* id_map;  // null: identity
    View<int32_t> ids;
    View<float> log_probs;
    int slices, width;  // slices of a row; candidates kept per slice
    LogitRow* rows;     // [rows], with noise
    uint64_t* best;     // [rows, slices, width], keys; 0: no more
    uint64_t* masses;   // [rows, slices], without noise
    unsigned* arrived;  // a counter for each row

    // Without noise only the logits count.
    __device__ LogitRow row(int r) const {
        return noise ? rows[r] : LogitRow{logits[r], logits.cols, 0, -1, 0, 0, 0};
    }
    __device__ bool is_noisy(const LogitRow& row) const { return noise && row.temperature > 0; }
    __device__ int target_id(int id) const { return id_map ? id_map[id] : id; }
    __device__ uint64_t& mass_of_slice(int r, int slice) const {
        return masses[r * slices + slice];
    }
    __device__ uint64_t* best_of(int r, int slice) const {
        return best + (size_t(r) * size_t(slices) + size_t(slice)) * size_t(width);
    }
};

__global__ void top_k_rows_kernel(TopKView step) {
    __shared__ BlockReducer::Space space;
    BlockReducer reducer(space);
    const float* x = step.logits[int(blockIdx.x)];
    const RowChoice rule = step.rules.of(int(blockIdx.x));
    const LogitRow row = processed_row(x, step.logits.cols, rule, reducer);
    if (threadIdx.x == 0) step.rows[blockIdx.x] = row;
}

constexpr int kMine = kSliceIds / kChoiceThreads;  // logits of a slice per thread
constexpr int kChoiceWarps = kChoiceThreads / 32;
__device__ int id_in(int slice, int i) {
    return slice * kSliceIds + i * kChoiceThreads + int(threadIdx.x);
}
// Loads a thread's logits of a slice, all before the first of them is used; beyond the last logit
// of the row it repeats that one.
__device__ void fetch(float (&logits)[kMine], const LogitRow& row, int slice) {
#pragma unroll
    for (int i = 0; i < kMine; ++i) logits[i] = row.x[min(id_in(slice, i), row.vocab - 1)];
}

// Merges sorted lists of `width` keys each, of which key_of(list, place) is one: calls put(rank,
// key) for the `width` best of all. Keys are different, except for the zeros at the ends of lists.
// A thread counts for each of its keys how many come before it, as long as these are fewer than
// `width`.
template <class KeyOf, class Put>
__device__ void merge_lists(int lists, int width, const KeyOf& key_of, const Put& put) {
    for (int i = int(threadIdx.x); i < lists * width; i += kChoiceThreads) {
        const int list_of_key = i / width;
        const uint64_t key = key_of(list_of_key, i % width);
        int rank = i % width;
        for (int list = 0; list < lists && rank < width; ++list) {
            if (list == list_of_key) continue;
            for (int place = 0; place < width && rank < width; ++place, ++rank) {
                const uint64_t other = key_of(list, place);
                if (other < key || (other == key && list > list_of_key)) break;
            }
        }
        if (rank < width) put(rank, key);
    }
}

// Calls put(rank, key) for the `width` best of the keys that the lanes of a warp have, best first;
// 0 if there are no more.
template <class Put>
__device__ void best_of_warp(const uint64_t (&keys)[kMine], int width, const Put& put) {
    uint64_t before = ~uint64_t(0), mine = 0;
    for (int rank = 0; rank < width; ++rank) {
        if (rank == 0 || mine == before) {  // its best has been taken
            mine = 0;
#pragma unroll
            for (int i = 0; i < kMine; ++i)
                if (keys[i] < before && keys[i] > mine) mine = keys[i];
        }
        const unsigned high = largest_of_warp(unsigned(mine >> 32));
        const unsigned low = largest_of_warp(mine >> 32 == high ? unsigned(mine) : 0);
        before = uint64_t(high) << 32 | low;
        if (threadIdx.x % 32 == 0) put(rank, before);
    }
}

__global__ void top_k_slices_kernel(TopKView step) {
    __shared__ SharedArray<uint64_t, kChoiceWarps * kMaxTopK> found;
    const int slice = int(blockIdx.x), r = int(blockIdx.y);
    const LogitRow row = step.row(r);
    float values[kMine];
    fetch(values, row, slice);
    if (step.is_noisy(row)) {
        float noise[kMine];
#pragma unroll
        for (int i = 0; i < kMine; ++i)
            noise[i] = step.noise[step.target_id(min(id_in(slice, i), row.vocab - 1))];
#pragma unroll
        for (int i = 0; i < kMine; ++i)
            values[i] = (row.kept(values[i], id_in(slice, i)) - row.top) * row.scale + noise[i];
    }
    uint64_t keys[kMine];
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
        const int id = id_in(slice, i);
        keys[i] = id < row.vocab ? order_key(values[i], id) : 0;
    }
    const int first = int(threadIdx.x) / 32 * step.width;
    best_of_warp(keys, step.width, [&](int rank, uint64_t key) { found[first + rank] = key; });
    __syncthreads();
    uint64_t* const best = step.best_of(r, slice);
    merge_lists(
        kChoiceWarps, step.width,
        [&](int warp, int place) -> uint64_t { return found[warp * step.width + place]; },
        [&](int rank, uint64_t key) { best[rank] = key; });
}

__device__ double log_sum_exp(SharedArray<float, kMaxTopK>& values, int count, double softness) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += exp((double(values[i]) - double(values[0])) / softness);
    return double(values[0]) / softness + log(sum);
}

// The mass of a slice, relative to the best logit of the whole row.
__device__ uint64_t mass_of_slice(const TopKView& step, int r, int slice, BlockReducer& reducer) {
    uint64_t best = 0, mass = 0;
    for (int i = int(threadIdx.x); i < step.slices; i += kChoiceThreads)
        best = max(best, step.best_of(r, i)[0]);
    float logits[kMine];
    fetch(logits, step.row(r), slice);
    const LogitRow row = row_of(step.logits[r], step.logits.cols, {}, reducer.largest(best));
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
        const uint64_t logit_mass = mass_of_logit(row, logits[i], 1.0f);
        mass += id_in(slice, i) < row.vocab ? logit_mass : 0;
    }
    return reducer.sum(mass);
}

__global__ void top_k_merge_kernel(TopKView step) {
    __shared__ BlockReducer::Space space;
    __shared__ SharedArray<uint64_t, kMaxTopK> best;
    __shared__ SharedArray<float, kMaxTopK> values;
    BlockReducer reducer(space);
    const int slice = int(blockIdx.x), r = int(blockIdx.y), i = int(threadIdx.x);
    const int k = step.ids.cols;
    const bool noisy = step.is_noisy(step.row(r));
    if (!noisy) {
        const uint64_t mass = mass_of_slice(step, r, slice, reducer);
        if (i == 0) step.mass_of_slice(r, slice) = mass;
    }
    if (!is_last_block(step.arrived + r, gridDim.x)) return;
    const int width = noisy ? step.width : k;
    merge_lists(
        step.slices, width, [&](int slice, int place) { return step.best_of(r, slice)[place]; },
        [&](int rank, uint64_t key) {
            best[rank] = key;
            values[rank] = logit_of(key);
        });
    __syncthreads();
    int count = 0;  // candidates above -inf
    while (count<width&& float(values[count])> - infinity()) ++count;
    double softness = 1, total = 0;
    if (noisy) {
        softness = step.rules.of(r).softness.value;
        if (count > 0) total = log_sum_exp(values, count, softness);
    } else {
        uint64_t mass = 0;
        for (int n = 0; n < step.slices; ++n) mass += step.mass_of_slice(r, n);
        const LogitRow row = row_of(step.logits[r], step.logits.cols, {}, best[0]);
        total = double(row.top) + log(double(mass) / double(kMassOne));
    }
    if (i >= k) return;
    const int id = id_of(best[i]);
    const double log_prob = double(values[i]) / softness - total;
    step.ids[r][i] = step.target_id(id);
    step.log_probs[r][i] = i < count ? float(log_prob) : -infinity();
}

}  // namespace

template <>
void CudaBackend::enqueue(const Sample& step) {
    for_edited_rows(step.choice, step.rows, logits_, *queue_,
                    [&](const View<const float>& logits, const RulesView& rules, int first) {
                        launch(
                            sample_kernel,
                            {dim3(unsigned(logits.rows)), dim3(kChoiceThreads), *queue_, "sample"},
                            row<int32_t>(step.ids, 0) + first, logits, rules,
                            step.rows.range(first, logits.rows).block, step.noise);
                    });
}

template <>
void CudaBackend::enqueue(const TopK& step) {
    const int vocab = step.choice.logits.cols, k = step.ids.cols;
    const int width = step.noise ? std::min(std::max(k, kSoftmaxWidth), vocab) : k;
    const auto rank = [&](const View<const float>& logits, const RulesView& rules, int first) {
        const unsigned rows = unsigned(logits.rows), slices = unsigned(slices_of(vocab));
        auto* const best = reinterpret_cast<uint64_t*>(rankings_ + kRowStateBytes);
        const TopKView view{logits,
                            rules,
                            step.noise ? row<const float>(step.noise, 0) : nullptr,
                            ids_of(step.choice),
                            step.ids.row_range(first, logits.rows),
                            step.log_probs.row_range(first, logits.rows),
                            int(slices),
                            width,
                            reinterpret_cast<LogitRow*>(rankings_),
                            best,
                            best + size_t(kPassRows) * slices * kMaxTopK,
                            tickets_};
        if (step.noise)
            launch(top_k_rows_kernel, {dim3(rows), dim3(kChoiceThreads), *queue_, "top_k_row"},
                   view);
        launch(top_k_slices_kernel,
               {dim3(slices, rows), dim3(kChoiceThreads), *queue_, "top_k_slice"}, view);
        launch(top_k_merge_kernel,
               {dim3(slices, rows), dim3(kChoiceThreads), *queue_, "top_k_merge"}, view);
    };
    for_edited_rows(step.choice, {}, logits_, *queue_, rank);
}

}  // namespace aerie::cuda
