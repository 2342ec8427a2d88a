// The time of single matmuls of Llama-2-7B on a GPU: bench_gpu_ops DEVICE [TYPE...] (f16 q8_0
// q4_0). Each matmul is recorded many times, over copies of its weights that together exceed a
// cache several times, so that neither launches nor caches distort it. Each line of the table and
// each entry of the JSON at the end is the time of one matmul, the median over the replays.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/registry.h"
#include "core/clock.h"
#include "measure/timings.h"
#include "model/make/random_weights.h"

namespace {

using namespace aerie;

struct Shape {
    const char* name;
    int outputs, inner;
};
constexpr Shape kShapes[] = {{"qkv", 12288, 4096},
                             {"o", 4096, 4096},
                             {"gate_up", 22016, 4096},
                             {"down", 4096, 11008},
                             {"head", 32000, 4096}};
constexpr int kRows[] = {1, 2, 4, 8, 16, 32, 60, 64}, kMaxRows = 64;
constexpr int kReplays = 9,
              kMinMatmuls = 48;  // per recording, so that the host adds little
constexpr size_t kRotatedBytes = size_t(400) << 20;

DType type_of(const std::string& text) {
    for (DType type : {DType::F16, DType::Q8_0, DType::Q4_0})
        if (text == name(type)) return type;
    throw UsageError(text + " is none of f16, q8_0, q4_0");
}

// Copies of one matrix, all with the same values.
std::vector<std::unique_ptr<Weight>> rotated_weights(Backend& device, const Shape& shape,
                                                     DType type) {
    const RandomWeights values(DType::F16, 1);
    std::vector<std::byte> source(dense_bytes(DType::F16, shape.outputs, shape.inner));
    values.fill("matrix", 0, source);
    const WeightBlock block{DType::F16, type, source.data(), shape.outputs, shape.inner};
    const size_t bytes = dense_bytes(type, shape.outputs, shape.inner);
    std::vector<std::unique_ptr<Weight>> copies;
    for (size_t i = 0; i < std::max<size_t>(2, kRotatedBytes / bytes + 1); ++i)
        copies.push_back(device.upload_weight({&block, 1}));
    return copies;
}

class Bench {
  public:
    explicit Bench(const std::string& device) : device_(open_device(device, {})) {
        device_->reserve(
            {.rows = kMaxRows, .widest = 22016, .vocab = 32000, .context = 64, .heads = 32});
        const auto probe = device_->memory_probe(size_t(4) << 30);
        for (int i = 0; i < 5; ++i) copy_.add(probe->copy());
        copy_gb_per_s_ = double(probe->size_bytes()) * 1e-9 / copy_.median();
        std::printf("%s, a copy of %.1f GB: %.0f GB/s\n",
                    device_->capabilities().description.c_str(), double(probe->size_bytes()) * 1e-9,
                    copy_gb_per_s_);
    }

    void run(const Shape& shape, DType type) {
        const auto weights = rotated_weights(*device_, shape, type);
        const double gigabytes = double(dense_bytes(type, shape.outputs, shape.inner)) * 1e-9;
        for (int rows : kRows) {
            const double seconds = seconds_of(weights, shape, rows);
            const double rate = gigabytes / seconds;
            std::printf("%-8s %-5s M=%-2d %9.1f us %7.0f GB/s %4.0f %% of a copy\n", shape.name,
                        name(type), rows, seconds * 1e6, rate, 100 * rate / copy_gb_per_s_);
            std::fflush(stdout);
            add(std::string(shape.name) + " " + name(type) + " " + std::to_string(rows), seconds);
        }
    }

    void print_json() const {
        std::printf("{\"schema\": \"aerie-gpu-ops-1\", \"copy_gb_per_s\": %.1f, \"us\": {%s}}\n",
                    copy_gb_per_s_, json_.c_str());
    }

  private:
    double seconds_of(const std::vector<std::unique_ptr<Weight>>& weights, const Shape& shape,
                      int rows) {
        const Buffer memory = device_->allocate(dense_bytes(DType::F32, rows, shape.inner));
        const Buffer room = device_->allocate(dense_bytes(DType::F32, rows, shape.inner));
        const Buffer results = device_->allocate(dense_bytes(DType::F32, rows, shape.outputs));
        const Tensor x = dense(memory.get(), DType::F32, rows, shape.inner);
        const std::vector<float> ones(size_t(rows) * size_t(shape.inner), 1.0f);
        device_->write(x, ones.data());
        const Tensor input = activation(*device_, x, *weights.front(),
                                        dense(room.get(), DType::F32, rows, shape.inner));
        const Tensor out = dense(results.get(), DType::F32, rows, shape.outputs);
        const size_t count = std::max<size_t>(kMinMatmuls, weights.size());
        const auto all = [&] {
            for (size_t i = 0; i < count; ++i)
                device_->run(Matmul{out, input, *weights[i % weights.size()]});
        };
        Timings times;
        for (int i = 0; i < kReplays + 2; ++i) {  // the first two run and record
            device_->sync();
            const double begin = steady_seconds();
            device_->replay(key_, all);
            device_->sync();
            if (i >= 2) times.add(steady_seconds() - begin);
        }
        ++key_;
        return times.median() / double(count);
    }

    void add(const std::string& key, double seconds) {
        char value[64];
        std::snprintf(value, sizeof value, "\": %.2f", seconds * 1e6);
        json_ += (json_.empty() ? "\"" : ", \"") + key + value;
    }

    std::unique_ptr<Backend> device_;
    Timings copy_;
    double copy_gb_per_s_ = 0;
    uint64_t key_ = 1;
    std::string json_;
};

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 2) throw UsageError("bench_gpu_ops DEVICE [TYPE...]");
    std::vector<DType> types;
    for (int i = 2; i < argc; ++i) types.push_back(type_of(argv[i]));
    if (types.empty()) types = {DType::F16, DType::Q8_0};
    Bench bench(argv[1]);
    for (DType type : types)
        for (const Shape& shape : kShapes) bench.run(shape, type);
    bench.print_json();
} catch (const std::exception& error) {
    std::fprintf(stderr, "bench_gpu_ops: %s\n", error.what());
    return 1;
}
