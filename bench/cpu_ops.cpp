// Speed of the CPU backend's ops: matmul at several shapes and row counts, attention, choices.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

#include "backend/ops.h"
#include "backend/registry.h"
#include "reference/matrix.h"

namespace {

using namespace aerie;
using reference::random_matrix;

// The quickest of several runs: the machine is shared.
double seconds(const std::function<void()>& op) {
    using Clock = std::chrono::steady_clock;
    double best = 1e9;
    const auto end = Clock::now() + std::chrono::milliseconds(150);
    for (int i = 0; i < 5 || Clock::now() < end; ++i) {
        const auto start = Clock::now();
        op();
        best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
    }
    return best;
}

class Bench {
  public:
    explicit Bench(int threads) : be_(open_device("cpu", {.threads = threads})) {
        be_->reserve({.rows = 64,
                      .top_k = 10,
                      .widest = 8192,
                      .vocab = 32000,
                      .context = 2048,
                      .heads = 32});
        std::printf("%s\n", be_->capabilities().description.c_str());
    }

    // Walks over copies of the weight that together exceed the caches, as a model's layers do.
    void matmuls(DType type, size_t total_bytes) {
        std::printf("%-14s %4s %9s %9s %9s\n", name(type), "rows", "ms", "GMAC/s", "GB/s");
        for (auto [outputs, inner] :
             {std::pair(4096, 256), {1408, 256}, {256, 704}, {2048, 2048}, {5632, 2048}}) {
            const size_t bytes = dense_bytes(type, outputs, inner);
            const int copies = std::max(1, int(total_bytes / bytes));
            std::vector<uint16_t> blocks(size_t(copies) * bytes / 2);
            for (size_t i = 0; i < blocks.size(); ++i) blocks[i] = uint16_t(0x3000 + i % 999);
            std::vector<std::unique_ptr<Weight>> weights;
            for (int c = 0; c < copies; ++c) {
                const WeightBlock block{type, blocks.data() + size_t(c) * bytes / 2, outputs,
                                        inner};
                weights.push_back(be_->upload_weight({&block, 1}, type));
            }
            for (int rows : {1, 2, 3, 4, 8, 16, 60}) {
                const Tensor x = random(rows, inner), out = tensor(rows, outputs);
                size_t next = 0;
                const double time =
                    seconds([&] { matmul(*be_, out, x, *weights[next++ % weights.size()]); });
                const double macs = double(rows) * outputs * inner;
                std::printf("%5d x %-6d %4d %9.4f %9.1f %9.1f\n", outputs, inner, rows, time * 1e3,
                            macs / time * 1e-9, double(bytes) / time * 1e-9);
            }
        }
    }

    void attentions() {
        const AttentionShape shape{32, 4, 64};
        const int context = 2048, columns = shape.kv_heads * shape.head_dim;
        KvLayer kv{tensor(context, columns, DType::F16), tensor(context, columns, DType::F16),
                   tensor(1, context / 64, DType::I32)};
        std::vector<int32_t> pages(context / 64);
        for (size_t i = 0; i < pages.size(); ++i) pages[i] = int32_t(i);
        be_->write(kv.page_table, pages.data());
        for (int position : {60, 500, 1900})
            for (int rows : {1, 60}) {
                std::vector<Row> place(static_cast<size_t>(rows));
                for (int r = 0; r < rows; ++r)
                    place[size_t(r)] = {
                        .position = position + r, .slot = position + r, .prefix = position + r};
                const Tensor block = tensor(rows, kRowInts, DType::I32);
                be_->write(block, place.data());
                const Tensor qkv = random(rows, (shape.heads + 2 * shape.kv_heads) * 64);
                const Tensor out = tensor(rows, shape.heads * 64);
                const double time = seconds([&] { attention(*be_, out, qkv, {block}, shape, kv); });
                std::printf("attention 32/4 heads of 64, %d rows at %d: %.4f ms, %.1f GMAC/s\n",
                            rows, position, time * 1e3,
                            2e-9 * rows * (position + rows / 2.0) * shape.heads * 64 / time);
            }
    }

    void choices() {
        for (int vocab : {4096, 32000}) {
            const int rows = 60;
            const Tensor noise_rows = tensor(7, vocab), positions = tensor(1, 7, DType::I32);
            const Tensor ids = tensor(1, rows, DType::I32),
                         block = tensor(rows, kRowInts, DType::I32);
            std::printf("noise of 7 x %d: %.3f ms\n", vocab,
                        1e3 * seconds([&] { noise(*be_, noise_rows, 1, positions); }));
            for (float deviation : {3.0f, 0.3f}) {
                Choice choice;
                choice.logits = random(rows, vocab, deviation);
                for (const Filters& f :
                     {Filters{}, Filters{.temperature = 1}, Filters{.temperature = 1, .top_k = 50},
                      Filters{.temperature = 1, .top_p = 0.9f},
                      Filters{.temperature = 1, .top_k = 50, .top_p = 0.9f}}) {
                    choice.filters = f;
                    const double time = seconds([&] {
                        sample(*be_, ids, {choice, {block}, noise_rows});
                    });
                    std::printf("sample %d x %d, deviation %.1f, T %g k %d p %g: %.3f ms\n", rows,
                                vocab, double(deviation), double(f.temperature), f.top_k,
                                double(f.top_p), time * 1e3);
                }
            }
            TopKStep step;
            step.choice.logits = random(10, vocab, 3);
            step.ids = tensor(10, 10, DType::I32);
            step.log_probs = tensor(10, 10);
            std::printf("top_k 10 of 10 x %d: %.3f ms\n", vocab,
                        1e3 * seconds([&] { top_k(*be_, step); }));
        }
        const Tensor wide = random(60, 11264), half = tensor(60, 5632), x = random(60, 2048);
        std::printf("swiglu 60 x 5632: %.3f ms\n",
                    1e3 * seconds([&] { swiglu(*be_, half, wide); }));
        const Tensor out = tensor(60, 2048), weight = random(1, 2048);
        std::printf("rms_norm 60 x 2048: %.3f ms\n",
                    1e3 * seconds([&] { rms_norm(*be_, out, x, weight, 1e-5f); }));
    }

  private:
    Tensor tensor(int rows, int cols, DType type = DType::F32) {
        memory_.push_back(be_->allocate(dense_bytes(type, rows, cols)));
        return dense(memory_.back().get(), type, rows, cols);
    }
    Tensor random(int rows, int cols, float deviation = 1) {
        const Tensor t = tensor(rows, cols);
        be_->write(t, random_matrix(rows, cols, 1, deviation).data.data());
        return t;
    }

    std::unique_ptr<Backend> be_;
    std::vector<Buffer> memory_;
};

}  // namespace

int main(int argc, char** argv) {
    Bench bench(argc > 1 ? std::atoi(argv[1]) : 0);
    const std::string what = argc > 2 ? argv[2] : "all";
    if (what != "rest") bench.matmuls(DType::F16, size_t(96) << 20);
    if (what == "all") bench.matmuls(DType::F32, size_t(96) << 20);
    if (what != "matmul") {
        bench.attentions();
        bench.choices();
    }
}
