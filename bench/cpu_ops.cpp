// Speed of single ops, with Google Benchmark: bench_cpu_ops [--benchmark_filter=matmul/q8_0].
// AERIE_DEVICE and AERIE_THREADS choose the device and its threads (default: the best, all).
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <numeric>
#include <vector>

#include "backend/backend.h"
#include "backend/registry.h"
#include "model/make/random_weights.h"
#include "reference/matrix.h"

namespace {

using namespace aerie;
using benchmark::Counter;
using benchmark::State;
using reference::random_matrix;

constexpr DType kWeightTypes[] = {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0};
constexpr int kRows[] = {1, 2, 4, 8, 16, 32, 60};
constexpr int kWideRows[] = {1, 60};  // for ops that cost little

struct MatrixSize {
    int outputs, inner;
};
constexpr MatrixSize kMatrices[] = {
    {4096, 256}, {256, 704}, {2048, 2048}, {11264, 2048}, {2048, 5632}};

std::unique_ptr<Backend> open() {
    const char* device = std::getenv("AERIE_DEVICE");
    const char* threads = std::getenv("AERIE_THREADS");
    auto backend = open_device(device ? device : "", {.threads = threads ? std::atoi(threads) : 0});
    backend->reserve({.rows = 64,
                      .top_k = 10,
                      .widest = 11264,
                      .vocab = 32000,
                      .context = 4160,
                      .heads = 32,
                      .head_dim = 128});
    return backend;
}

Backend& device() {
    static const std::unique_ptr<Backend> backend = open();
    return *backend;
}

// The device tensors of one benchmark.
class Tensors {
  public:
    Tensor make(int rows, int cols, DType type = DType::F32) {
        memory_.push_back(device().allocate(dense_bytes(type, rows, cols)));
        return dense(memory_.back().get(), type, rows, cols);
    }
    Tensor random(int rows, int cols, float deviation = 1) {
        const Tensor t = make(rows, cols);
        device().write(t, random_matrix(rows, cols, 1, deviation).data.data());
        return t;
    }
    // Rows of a cache with random values in f16.
    Tensor cache(int rows, int cols) {
        const RandomWeights values(DType::F16, 1);
        std::vector<std::byte> bytes(dense_bytes(DType::F16, rows, cols));
        values.fill("cache", 0, bytes);
        const Tensor t = make(rows, cols, DType::F16);
        device().write(t, bytes.data());
        return t;
    }
    // The rows of a tree of siblings behind so many positions.
    Rows rows(int count, int position) {
        std::vector<Row> rows(static_cast<size_t>(count));
        for (int i = 0; i < count; ++i)
            rows[size_t(i)] = {.position = position, .slot = position + i, .prefix = position};
        const Tensor block = make(count, kRowInts, DType::I32);
        device().write(block, rows.data());
        return {block};
    }

  private:
    std::vector<Buffer> memory_;
};

template <class Op>
void repeat(State& state, const Op& op) {
    for (auto iteration : state) {
        op();
        device().sync();
    }
}

// Copies of one matrix that together exceed the caches, as a model's layers do.
class Weights {
  public:
    Weights(DType type, MatrixSize size) : type_(type), size_(size) {
        const bool as_it_is = is_float(type);
        const RandomWeights values(as_it_is ? type : DType::F16, 1);
        const size_t bytes = dense_bytes(values.type(), size.outputs, size.inner);
        const size_t copies = std::max<size_t>(1, kTotalBytes / this->bytes());
        // One copy of the source is enough if the device makes its own.
        source_.resize(as_it_is ? copies * bytes : bytes);
        values.fill("matrix", 0, source_);
        for (size_t i = 0; i < copies; ++i) {
            const WeightBlock block{values.type(), type,
                                    source_.data() + (as_it_is ? i * bytes : 0), size.outputs,
                                    size.inner};
            weights_.push_back(device().upload_weight({&block, 1}));
        }
    }
    bool is(DType type, MatrixSize size) const {
        return type_ == type && size_.outputs == size.outputs && size_.inner == size.inner;
    }
    size_t bytes() const { return dense_bytes(type_, size_.outputs, size_.inner); }
    const Weight& next() { return *weights_[next_++ % weights_.size()]; }

  private:
    static constexpr size_t kTotalBytes = size_t(96) << 20;
    DType type_;
    MatrixSize size_;
    std::vector<std::byte> source_;
    std::vector<std::unique_ptr<Weight>> weights_;
    size_t next_ = 0;
};

// The weights of the last benchmark are kept: the next one often differs only in its rows.
Weights& weights(DType type, MatrixSize size) {
    static std::unique_ptr<Weights> last;
    if (!last || !last->is(type, size)) {
        last.reset();
        last = std::make_unique<Weights>(type, size);
    }
    return *last;
}

void bench_matmul(State& state, DType type, MatrixSize size, int rows) {
    Weights& matrices = weights(type, size);
    Tensors tensors;
    const Tensor out = tensors.make(rows, size.outputs), floats = tensors.random(rows, size.inner);
    const Tensor scratch = tensors.make(rows, size.inner);
    const Tensor x = activation(device(), floats, matrices.next(), scratch);
    repeat(state, [&] { device().run(Matmul{out, x, matrices.next()}); });
    const double runs = double(state.iterations());
    state.counters["B/s"] = Counter(runs * double(matrices.bytes()), Counter::kIsRate);
    state.counters["MAC/s"] = Counter(runs * rows * size.outputs * size.inner, Counter::kIsRate);
}

// The shapes of TinyLlama-1.1B, SmolLM2-135M, Llama-3.2-1B and Qwen3-1.7B.
constexpr AttentionShape kShapes[] = {{32, 4, 64}, {9, 3, 64}, {32, 8, 64}, {16, 8, 128}};
constexpr int kContext = 4096 + 64;

void bench_attention(State& state, AttentionShape shape, int rows, int position) {
    const int columns = shape.kv_heads * shape.head_dim;
    Tensors tensors;
    const KvLayer kv{tensors.cache(kContext, columns), tensors.cache(kContext, columns),
                     tensors.make(1, kContext / kPageSize, DType::I32)};
    std::vector<int32_t> pages(kContext / kPageSize);
    std::iota(pages.begin(), pages.end(), 0);
    device().write(kv.page_table, pages.data());
    const Rows block = tensors.rows(rows, position);
    const Tensor qkv = tensors.random(rows, (shape.heads + 2 * shape.kv_heads) * shape.head_dim);
    const Tensor out = tensors.make(rows, shape.heads * shape.head_dim);
    repeat(state, [&] {
        device().run(Attention{out, qkv, block, shape, kv, shape.usual_scale()});
    });
    const double macs = 2.0 * rows * (position + 1) * shape.heads * shape.head_dim;
    state.counters["MAC/s"] = Counter(double(state.iterations()) * macs, Counter::kIsRate);
}

void bench_rms_norm(State& state, DType type, int rows) {
    Tensors tensors;
    const Tensor x = tensors.random(rows, 2048), weight = tensors.random(1, 2048);
    const Tensor out = tensors.make(rows, 2048, type);
    repeat(state, [&] { device().run(RmsNorm{out, x, weight, 1e-5f}); });
}

void bench_swiglu(State& state, DType type, int rows) {
    Tensors tensors;
    const Tensor x = tensors.random(rows, 11264), out = tensors.make(rows, 5632, type);
    repeat(state, [&] { device().run(Gated{out, x, Activation::silu}); });
}

void bench_noise(State& state, int depths) {
    Tensors tensors;
    const Tensor out = tensors.make(depths, 32000), positions = tensors.make(1, depths, DType::I32);
    repeat(state, [&] { device().run(Noise{out, 1, positions}); });
}

struct NamedFilters {
    const char* name;
    Filters filters;
};
const NamedFilters kFilters[] = {{"greedy", {}},
                                 {"t1", {.temperature = 1}},
                                 {"t1_k50", {.temperature = 1, .top_k = 50}},
                                 {"t1_p0.9", {.temperature = 1, .top_p = 0.9f}}};

void bench_sample(State& state, const Filters& filters, int rows) {
    Tensors tensors;
    Sample step;
    step.choice.logits = tensors.random(rows, 32000, 3);
    const RowChoice rule(filters, {});
    step.choice.rules = {
        tensors.make(1, kRowChoiceInts, DType::I32), {}, filters.top_k > 0, filters.top_p < 1};
    device().write(step.choice.rules.block, &rule);
    step.rows = tensors.rows(rows, 0);
    if (filters.temperature > 0) step.noise = tensors.make(1, 32000);
    step.ids = tensors.make(1, rows, DType::I32);
    repeat(state, [&] { device().run(step); });
}

void bench_top_k(State& state, int rows) {
    Tensors tensors;
    TopK step;
    step.choice.logits = tensors.random(rows, 32000, 3);
    step.ids = tensors.make(rows, 10, DType::I32);
    step.log_probs = tensors.make(rows, 10);
    repeat(state, [&] { device().run(step); });
}

// Adds a row of the report. Times are wall-clock times, since the device has threads of its own.
template <class Bench, class... Arguments>
void add(const std::string& name, const Bench& bench, Arguments... arguments) {
    benchmark::RegisterBenchmark(name.c_str(), [=](State& state) {
        bench(state, arguments...);
    })->UseRealTime();
}

void add_all() {
    for (const DType type : kWeightTypes)
        for (const MatrixSize size : kMatrices)
            for (const int rows : kRows)
                add(std::string("matmul/") + name(type) + "/" + std::to_string(size.outputs) + "x" +
                        std::to_string(size.inner) + "/rows:" + std::to_string(rows),
                    bench_matmul, type, size, rows);
    for (const int rows : kWideRows) {
        const std::string suffix = "/rows:" + std::to_string(rows);
        for (const DType type : {DType::F32, DType::I8G32}) {
            add(std::string("rms_norm/") + name(type) + suffix, bench_rms_norm, type, rows);
            add(std::string("swiglu/") + name(type) + suffix, bench_swiglu, type, rows);
        }
        for (const NamedFilters& one : kFilters)
            add(std::string("sample/") + one.name + suffix, bench_sample, one.filters, rows);
    }
    for (const AttentionShape& shape : kShapes)
        for (const int position : {60, 500, 4096})
            for (const int rows : {1, 2, 8, 60})
                add("attention/" + std::to_string(shape.heads) + ":" +
                        std::to_string(shape.kv_heads) + "x" + std::to_string(shape.head_dim) +
                        "/at:" + std::to_string(position) + "/rows:" + std::to_string(rows),
                    bench_attention, shape, rows, position);
    add("top_k/rows:10", bench_top_k, 10);
    add("noise/depths:7", bench_noise, 7);
}

}  // namespace

int main(int argc, char** argv) {
    add_all();
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::AddCustomContext("device", device().capabilities().description);
    benchmark::RunSpecifiedBenchmarks();
    benchmark::Shutdown();
}
