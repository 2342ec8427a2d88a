// Choices from rows of logits: sample, probs and top_k. A block of threads a row.
#include <algorithm>
#include <cmath>

#include "cuda/backend.h"
#include "cuda/device/logits.cuh"
#include "cuda/launch.h"

namespace aerie::cuda {

namespace {

constexpr int kSoftmaxWidth = 10;  // candidates under the softmax of noisy log-probabilities

Cuts cuts_of(const Filters& filters) {
    return {.temperature = filters.temperature,
            .top_k = filters.top_k,
            .top_p = filters.top_p,
            .min_p = filters.min_p > 0,
            .log_min_p = filters.min_p > 0 ? std::log(std::min(double(filters.min_p), 1.0)) : 0};
}

// Logits after edits and mask. Edits of one token come in order: one thread has all of them. A
// forbidden token is NaN: it ranks below -inf and is never chosen.
__global__ void edit_kernel(View<float> out, View<const float> logits, View<const int32_t> edits,
                            View<const int32_t> mask, int first_row) {
    const int r = int(blockIdx.x), thread = int(threadIdx.x);
    for (int id = thread; id < out.cols; id += kChoiceThreads) out[r][id] = logits[r][id];
    __syncthreads();
    for (int i = 0; edits.data && i < edits.rows; ++i) {
        const Edit& edit = *reinterpret_cast<const Edit*>(edits[i]);
        if (edit.row != -1 && edit.row != first_row + r) continue;
        if (edit.token % kChoiceThreads != thread) continue;
        float& l = out[r][edit.token];
        l = (l > 0 ? l / edit.divide : l * edit.divide) + edit.add;
    }
    if (!mask.data) return;
    for (int id = thread; id < out.cols; id += kChoiceThreads)
        if (!(uint32_t(mask[r][id / 32]) >> (id % 32) & 1)) out[r][id] = not_a_number();
}

// body(logits of some rows, the first of them), with edits and mask applied.
template <class Body>
void for_edited_rows(const Choice& choice, float* space, cudaStream_t stream, const Body& body) {
    for (int first = 0; first < choice.logits.rows; first += kPassRows) {
        const int count = std::min(kPassRows, choice.logits.rows - first);
        View<float> logits(choice.logits.row_range(first, count));
        if (choice.edits || choice.mask) {
            const View<float> from = logits;
            logits.data = space;
            logits.stride = size_t(logits.cols);
            const Tensor mask = choice.mask ? choice.mask.row_range(first, count) : Tensor{};
            launch(edit_kernel, {dim3(unsigned(count)), dim3(kChoiceThreads), stream}, logits,
                   View<const float>{from}, choice.edits, mask, first);
        }
        body(View<const float>{logits}, first);
    }
}

__global__ void sample_kernel(int32_t* ids, View<const float> logits, Cuts cuts,
                              View<const int32_t> rows, View<const float> noise) {
    __shared__ BlockReducer::Space space;
    BlockReducer reducer(space);
    const int r = int(blockIdx.x);
    const Row& place = *reinterpret_cast<const Row*>(rows[r]);
    if (place.slot < 0) return;
    const LogitRow row = processed_row(logits[r], logits.cols, cuts, reducer);
    int chosen = row.top_id;
    if (row.temperature > 0) {
        const float* noise_row = noise[place.position - place.prefix];
        uint64_t best = 0;
        for (int id = int(threadIdx.x); id < row.vocab; id += kChoiceThreads) {
            const float z = (row.kept(id) - row.top) * row.scale() + noise_row[id];
            const uint64_t key = order_key(z, id);
            if (key > best) best = key;
        }
        chosen = id_of(reducer.largest(best));
    }
    if (threadIdx.x == 0) ids[r] = chosen;
}

__global__ void probs_kernel(View<float> out, View<const float> logits, Cuts cuts) {
    __shared__ BlockReducer::Space space;
    BlockReducer reducer(space);
    const int r = int(blockIdx.x);
    const LogitRow row = processed_row(logits[r], logits.cols, cuts, reducer);
    if (row.temperature == 0) {
        for (int id = int(threadIdx.x); id < row.vocab; id += kChoiceThreads)
            out[r][id] = id == row.top_id ? 1.0f : 0.0f;
        return;
    }
    const float scale = row.scale();
    const double total = double(total_mass(row, scale, reducer)) / double(kMassOne);
    const float factor = float(1 / total);
    for (int id = int(threadIdx.x); id < row.vocab; id += kChoiceThreads) {
        const float z = (row.kept(id) - row.top) * scale;
        out[r][id] = z <= infinity() ? exp_of(z) * factor : 0.0f;
    }
}

struct TopKView {
    View<const float> logits;
    Cuts cuts;
    const float* noise;  // null: rank by logit
    float softness;
    const int32_t* id_map;  // null: identity
    View<int32_t> ids;
    View<float> log_probs;
};

// The candidates of a row as they are found, best first.
struct Ranking {
    SharedArray<int, kMaxTopK>& ids;
    SharedArray<float, kMaxTopK>& values;

    // The `width` best by value(id); returns how many of them are above -inf.
    template <class Value>
    __device__ int find(int width, int vocab, BlockReducer& reducer, const Value& value) {
        uint64_t before = ~uint64_t(0);
        int count = 0;
        for (int rank = 0; rank < width; ++rank) {
            uint64_t best = 0;
            for (int id = int(threadIdx.x); id < vocab; id += kChoiceThreads) {
                const uint64_t key = order_key(value(id), id);
                if (key < before && key > best) best = key;
            }
            before = reducer.largest(best);
            const float found = value(id_of(before));
            if (found > -infinity()) ++count;
            if (threadIdx.x == 0) {
                ids[rank] = id_of(before);
                values[rank] = found;
            }
        }
        __syncthreads();
        return count;
    }
};

__device__ double log_sum_exp(SharedArray<float, kMaxTopK>& values, int count, double softness) {
    double sum = 0;
    for (int i = 0; i < count; ++i) sum += exp((double(values[i]) - double(values[0])) / softness);
    return double(values[0]) / softness + log(sum);
}

__global__ void top_k_kernel(TopKView step) {
    __shared__ BlockReducer::Space space;
    __shared__ SharedArray<int, kMaxTopK> ids;
    __shared__ SharedArray<float, kMaxTopK> values;
    BlockReducer reducer(space);
    Ranking ranking{ids, values};
    const int r = int(blockIdx.x), k = step.ids.cols, vocab = step.logits.cols;
    const float* x = step.logits[r];
    LogitRow row = step.noise ? processed_row(x, vocab, step.cuts, reducer)
                              : find_top(x, vocab, step.cuts, reducer);
    double softness = 1, total = 0;
    int count = 0;
    if (step.noise && row.temperature > 0) {
        softness = step.softness;
        const float scale = row.scale();
        count = ranking.find(min(max(k, kSoftmaxWidth), vocab), vocab, reducer, [&](int id) {
            return (row.kept(id) - row.top) * scale + step.noise[id];
        });
        if (count > 0) total = log_sum_exp(values, count, softness);
    } else {
        row.cut = 0;
        count = ranking.find(k, vocab, reducer, [&](int id) { return x[id]; });
        const uint64_t mass = total_mass(row, 1.0f, reducer);
        total = double(row.top) + log(double(mass) / double(kMassOne));
    }
    const int i = int(threadIdx.x);
    if (i >= k) return;
    const int id = ids[i];
    const double log_prob = double(values[i]) / softness - total;
    step.ids[r][i] = step.id_map ? step.id_map[id] : id;
    step.log_probs[r][i] = i < min(count, k) ? float(log_prob) : -infinity();
}

}  // namespace

void CudaBackend::do_sample(Tensor ids, const SampleStep& step) {
    for_edited_rows(step.choice, logits_, stream_, [&](const View<const float>& logits, int first) {
        launch(sample_kernel, {dim3(unsigned(logits.rows)), dim3(kChoiceThreads), stream_},
               row<int32_t>(ids, 0) + first, logits, cuts_of(step.choice.filters),
               step.rows.range(first, logits.rows).block, step.noise);
    });
}

void CudaBackend::do_probs(Tensor out, const Choice& choice) {
    for_edited_rows(choice, logits_, stream_, [&](const View<const float>& logits, int first) {
        launch(probs_kernel, {dim3(unsigned(logits.rows)), dim3(kChoiceThreads), stream_},
               out.row_range(first, logits.rows), logits, cuts_of(choice.filters));
    });
}

void CudaBackend::do_top_k(const TopKStep& step) {
    for_edited_rows(step.choice, logits_, stream_, [&](const View<const float>& logits, int first) {
        const TopKView view{logits,
                            cuts_of(step.choice.filters),
                            step.noise ? row<const float>(step.noise, 0) : nullptr,
                            step.softness,
                            step.id_map ? row<const int32_t>(step.id_map, 0) : nullptr,
                            step.ids.row_range(first, logits.rows),
                            step.log_probs.row_range(first, logits.rows)};
        launch(top_k_kernel, {dim3(unsigned(logits.rows)), dim3(kChoiceThreads), stream_}, view);
    });
}

}  // namespace aerie::cuda
