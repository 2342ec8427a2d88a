// Choices from rows of logits: sample, probs and top_k. A block of threads a row.
#include <algorithm>

#include "cuda/backend.h"
#include "cuda/device/logits.cuh"
#include "cuda/launch.h"
#include "cuda/scratch.h"

namespace aerie::cuda {

namespace {

constexpr int kSoftmaxWidth = 10;  // candidates under the softmax of noisy log-probabilities
static_assert(kPassRows * sizeof(LogitRow) <= kRowStateBytes);

// Tokens of a drafted row's path below the root, its own included.
struct PathTokens {
    SharedArray<int32_t, kMaxDepth>& tokens;
    int count = 0;

    // By all threads of the block; a barrier must follow.
    __device__ void load(const View<const int32_t>& rows, int index) {
        const Row& last = *reinterpret_cast<const Row*>(rows[index]);
        count = max(last.position - last.prefix, 0);
        const int i = int(threadIdx.x) + 1;  // of the path; the root is known to `seen`
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
// chosen. `rows` of the whole choice, if it has drafted ones.
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
            const int32_t seen = rules.seen[rule.text][token] + path.times(token) * kPutOut;
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

// body(logits of some rows, their rules, the first of them), with penalties and mask applied.
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

__global__ void probs_kernel(View<float> out, View<const float> logits, RulesView rules) {
    __shared__ BlockReducer::Space space;
    BlockReducer reducer(space);
    const int r = int(blockIdx.x);
    const LogitRow row = processed_row(logits[r], logits.cols, rules.of(r), reducer);
    if (row.temperature == 0) {
        for (int id = int(threadIdx.x); id < row.vocab; id += kChoiceThreads)
            out[r][id] = id == row.top_id ? 1.0f : 0.0f;
        return;
    }
    const double total = double(total_mass(row, row.scale, reducer)) / double(kMassOne);
    const float factor = float(1 / total);
    for (int id = int(threadIdx.x); id < row.vocab; id += kChoiceThreads) {
        const float z = (row.kept(id) - row.top) * row.scale;
        out[r][id] = z <= infinity() ? exp_of(z) * factor : 0.0f;
    }
}

// top_k in three kernels: with noise, what a row is like as a whole; the best of each slice of it;
// the best of those.
struct TopKView {
    View<const float> logits;
    RulesView rules;
    const float* noise;  // by target id; null: rank by logit
    const int32_t* id_map;  // null: identity
    View<int32_t> ids;
    View<float> log_probs;
    int slices, width;  // candidates that are kept of each slice
    LogitRow* rows;     // [rows], with noise
    uint64_t* best;     // [rows, slices, width], 0: no more

    // Without noise only the logits count.
    __device__ LogitRow row(int r) const {
        return noise ? rows[r] : LogitRow{logits[r], logits.cols, 0, -1, 0, 0, 0};
    }
    __device__ bool is_noisy(const LogitRow& row) const { return noise && row.temperature > 0; }
    __device__ int target_id(int id) const { return id_map ? id_map[id] : id; }
    __device__ float value(const LogitRow& row, int id) const {
        if (!is_noisy(row)) return row.x[id];
        return (row.kept(id) - row.top) * row.scale + noise[target_id(id)];
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

// The `width` best keys by key(i), i < count, best first; 0 where there are no more.
template <class Key>
__device__ void take_best(uint64_t* best, int width, BlockReducer& reducer, const Key& key) {
    uint64_t before = ~uint64_t(0);
    for (int rank = 0; rank < width; ++rank) {
        before = reducer.largest(key(before));
        if (threadIdx.x == 0) best[rank] = before;
    }
}

__global__ void top_k_slices_kernel(TopKView step) {
    __shared__ BlockReducer::Space space;
    BlockReducer reducer(space);
    constexpr int kMine = kSliceIds / kChoiceThreads;
    const int slice = int(blockIdx.x), r = int(blockIdx.y);
    const LogitRow row = step.row(r);
    uint64_t keys[kMine];
#pragma unroll
    for (int i = 0; i < kMine; ++i) {
        const int id = slice * kSliceIds + i * kChoiceThreads + int(threadIdx.x);
        keys[i] = id < row.vocab ? order_key(step.value(row, id), id) : 0;
    }
    take_best(step.best_of(r, slice), step.width, reducer, [&](uint64_t before) {
        uint64_t best = 0;
#pragma unroll
        for (int i = 0; i < kMine; ++i)
            if (keys[i] < before && keys[i] > best) best = keys[i];
        return best;
    });
}

__device__ double log_sum_exp(SharedArray<float, kMaxTopK>& values, int count, double softness) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += exp((double(values[i]) - double(values[0])) / softness);
    return double(values[0]) / softness + log(sum);
}

__global__ void top_k_merge_kernel(TopKView step) {
    __shared__ BlockReducer::Space space;
    __shared__ SharedArray<uint64_t, kMaxTopK> best;
    __shared__ SharedArray<float, kMaxTopK> values;
    BlockReducer reducer(space);
    const int r = int(blockIdx.x), i = int(threadIdx.x), k = step.ids.cols;
    LogitRow row = step.row(r);
    const bool noisy = step.is_noisy(row);
    const int width = noisy ? step.width : k, candidates = step.slices * step.width;
    const uint64_t* found = step.best_of(r, 0);
    uint64_t before = ~uint64_t(0);
    for (int rank = 0; rank < width; ++rank) {
        uint64_t mine = 0;
        for (int n = i; n < candidates; n += kChoiceThreads)
            if (found[n] < before && found[n] > mine) mine = found[n];
        before = reducer.largest(mine);
        if (i == 0) {
            best[rank] = before;
            values[rank] = logit_of(before);
        }
    }
    __syncthreads();
    int count = 0;  // of those above -inf
    while (count<width&& float(values[count])> - infinity()) ++count;
    double softness = 1, total = 0;
    if (noisy) {
        softness = step.rules.of(r).softness.value;
        if (count > 0) total = log_sum_exp(values, count, softness);
    } else {
        row = row_of(row.x, row.vocab, {}, best[0]);
        const uint64_t mass = total_mass(row, 1.0f, reducer);
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
void CudaBackend::execute(const Sample& step) {
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
void CudaBackend::execute(const Probs& op) {
    const Tensor& out = op.out;
    for_edited_rows(op.choice, {}, logits_, *queue_,
                    [&](const View<const float>& logits, const RulesView& rules, int first) {
                        launch(
                            probs_kernel,
                            {dim3(unsigned(logits.rows)), dim3(kChoiceThreads), *queue_, "probs"},
                            out.row_range(first, logits.rows), logits, rules);
                    });
}

template <>
void CudaBackend::execute(const TopK& step) {
    const int vocab = step.choice.logits.cols, k = step.ids.cols;
    const int width = step.noise ? std::min(std::max(k, kSoftmaxWidth), vocab) : k;
    const auto rank = [&](const View<const float>& logits, const RulesView& rules, int first) {
        const unsigned rows = unsigned(logits.rows), slices = unsigned(slices_of(vocab));
        const TopKView view{logits,
                            rules,
                            step.noise ? row<const float>(step.noise, 0) : nullptr,
                            ids_of(step.choice),
                            step.ids.row_range(first, logits.rows),
                            step.log_probs.row_range(first, logits.rows),
                            int(slices),
                            width,
                            reinterpret_cast<LogitRow*>(rankings_),
                            reinterpret_cast<uint64_t*>(rankings_ + kRowStateBytes)};
        if (step.noise)
            launch(top_k_rows_kernel, {dim3(rows), dim3(kChoiceThreads), *queue_, "top_k_row"},
                   view);
        launch(top_k_slices_kernel,
               {dim3(slices, rows), dim3(kChoiceThreads), *queue_, "top_k_slice"}, view);
        launch(top_k_merge_kernel, {dim3(rows), dim3(kChoiceThreads), *queue_, "top_k_merge"},
               view);
    };
    for_edited_rows(step.choice, {}, logits_, *queue_, rank);
}

}  // namespace aerie::cuda
