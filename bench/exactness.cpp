// The cost of a fixed order of sums: our matmul against products with sums in no fixed order, in
// turn on the same machine and threads. bench_exactness [ROUNDS [THREADS [TYPE]]] (default 15, all,
// all).
//
// The others are OpenBLAS, if it was found (f32 as it is, one thread for each part of the rows; f16
// and q8_0 converted block by block first), and free_order.cpp. Each gets activations in the type
// that it reads. Weights are several copies that together exceed the caches.
#ifdef AERIE_OPENBLAS
#include <cblas.h>
#endif

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>

#include "backend/backend.h"
#include "backend/registry.h"
#include "core/error.h"
#include "cpu/parallel.h"
#include "free_order.h"
#include "measure/timings.h"
#include "model/make/random_weights.h"
#include "reference/matrix.h"

namespace {

using namespace aerie;

struct Size {
    int rows, inner;
};
constexpr Size kSizes[] = {{2048, 2048}, {5632, 2048}, {32000, 2048}};
constexpr int kColumns[] = {1, 8, 64};
constexpr size_t kCopiesBytes = size_t(96) << 20;

// One matrix in one type, copied until it exceeds the caches.
template <class W>
class Copies {
  public:
    Copies(std::vector<W> one, size_t count) : size_(one.size()) {
        for (size_t i = 0; i < count; ++i) all_.insert(all_.end(), one.begin(), one.end());
    }
    const W* next() { return all_.data() + next_++ % (all_.size() / size_) * size_; }

  private:
    std::vector<W> all_;
    size_t size_, next_ = 0;
};

// A way to multiply. `out` has the result when `run` returns.
struct Contender {
    std::string name;
    std::function<void()> run;
    std::vector<float> out = {};
    Timings seconds = {};
};

// Everything for one cell of the table.
class Cell {
  public:
    Cell(Backend& device, cpu::Pool& pool, DType type, Size size, int columns)
        : device_(device), pool_(pool), type_(type), size_(size), columns_(columns) {
        copies_ = kCopiesBytes / dense_bytes(type, size.rows, size.inner) + 1;
        x_ = reference::random_matrix(columns, size.inner, 1).data;
        w_ = weights();
        contenders_.reserve(3);
        add_ours();
        if (type == DType::F32) add_free(w_, x_);
        if (type == DType::F16) add_free(halves_, x_);
        if (type == DType::Q8_0) add_free(blocks(), packed_x());
    }

    void round() {
        for (Contender& one : contenders_)
            for (int i = 0; i < 3; ++i) one.seconds.add(seconds_of(one.run));
    }

    void check() {
        device_.read(out_, contenders_[0].out.data());
        for (const Contender& one : contenders_) {
            double error = 0, norm = 0;
            for (size_t i = 0; i < one.out.size(); ++i) {
                error += std::pow(double(one.out[i]) - double(contenders_[0].out[i]), 2);
                norm += std::pow(double(contenders_[0].out[i]), 2);
            }
            if (!(error <= (type_ == DType::Q8_0 ? 1e-3 : 1e-6) * norm))
                throw Error(one.name + " computes something else");
        }
    }

    void print() {
        const double ours = contenders_[0].seconds.median();
        std::printf("%-5s %5dx%d  M=%-3d %9.3f ms", name(type_), size_.rows, size_.inner, columns_,
                    ours * 1e3);
        double best = 1e9;
        for (size_t i = 1; i < contenders_.size(); ++i) {
            const double theirs = contenders_[i].seconds.median();
            best = std::min(best, theirs);
            std::printf("  %s %9.3f ms", contenders_[i].name.c_str(), theirs * 1e3);
        }
        std::printf("  ours / best %.2f\n", ours / best);
        std::fflush(stdout);
    }

  private:
    std::vector<float> weights() {
        const size_t count = size_t(size_.rows) * size_t(size_.inner);
        halves_.resize(count);
        RandomWeights(DType::F16, 1)
            .fill("matrix", 0, {reinterpret_cast<std::byte*>(halves_.data()), 2 * count});
        std::vector<float> floats(count);
        free_order::widen(floats.data(), halves_.data(), int64_t(count));
        return floats;
    }

    void add_ours() {
        const bool wide = type_ == DType::F32;
        const WeightBlock block{wide ? DType::F32 : DType::F16, type_,
                                wide ? static_cast<const void*>(w_.data()) : halves_.data(),
                                size_.rows, size_.inner};
        for (size_t i = 0; i < copies_; ++i) ours_.push_back(device_.upload_weight({&block, 1}));
        memory_.push_back(device_.allocate(dense_bytes(DType::F32, columns_, size_.inner)));
        memory_.push_back(device_.allocate(dense_bytes(DType::F32, columns_, size_.inner)));
        memory_.push_back(device_.allocate(dense_bytes(DType::F32, columns_, size_.rows)));
        const Tensor floats = dense(memory_[0].get(), DType::F32, columns_, size_.inner);
        device_.write(floats, x_.data());
        our_x_ = activation(device_, floats, *ours_[0],
                            dense(memory_[1].get(), DType::F32, columns_, size_.inner));
        out_ = dense(memory_[2].get(), DType::F32, columns_, size_.rows);
        add("ours", [this, next = size_t(0)](float*) mutable {
            device_.run(Matmul{out_, our_x_, *ours_[next++ % ours_.size()]});
            device_.sync();
        });
    }

    void add(const char* name, std::function<void(float*)> multiply) {
        Contender& one = contenders_.emplace_back();
        one.name = name;
        one.out.resize(size_t(columns_) * size_t(size_.rows));
        one.run = [multiply = std::move(multiply), out = one.out.data()] { multiply(out); };
    }

    // Runs `body` for parts of `grain` rows.
    template <class Body>
    void share(int grain, const Body& body) {
        pool_.run(size_.rows, double(size_.inner) * columns_, grain, body);
    }

    template <class W, class X>
    void add_free(const std::vector<W>& w, const std::vector<X>& x) {
        auto copies = std::make_shared<Copies<W>>(w, copies_);
        add("free order", [this, copies, x](float* out) {
            const W* weight = copies->next();
            share(48, [&](int first, int last, int) {
                free_order::multiply({out, size_.rows, size_.inner, columns_, first, last}, weight,
                                     x.data());
            });
        });
#ifdef AERIE_OPENBLAS
        add("OpenBLAS", [this, copies](float* out) { multiply_blas(copies->next(), out); });
#endif
    }

#ifdef AERIE_OPENBLAS
    void multiply_rows(const float* weight, float* out, int rows) const {
        if (columns_ == 1)
            cblas_sgemv(CblasRowMajor, CblasNoTrans, rows, size_.inner, 1, weight, size_.inner,
                        x_.data(), 1, 0, out, 1);
        else
            cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, columns_, rows, size_.inner, 1,
                        x_.data(), size_.inner, weight, size_.inner, 0, out, size_.rows);
    }

    void multiply_blas(const float* weight, float* out) {
        share((size_.rows + pool_.threads() - 1) / pool_.threads(), [&](int first, int last, int) {
            multiply_rows(weight + size_t(first) * size_t(size_.inner), out + first, last - first);
        });
    }

    template <class W>
    void multiply_blas(const W* weight, float* out) {
        constexpr int kRows = 128;  // converted at a time
        share(kRows, [&](int first, int last, int) {
            thread_local std::vector<float> wide;
            wide.resize(size_t(kRows) * size_t(size_.inner));
            const int64_t block = std::is_same_v<W, BlockQ8_0> ? kGroup : 1;
            for (int row = first; row < last; row += kRows) {
                const int rows = std::min(kRows, last - row);
                free_order::widen(wide.data(), weight + int64_t(row) * size_.inner / block,
                                  int64_t(rows) * size_.inner);
                multiply_rows(wide.data(), out + row, rows);
            }
        });
    }
#endif

    std::vector<BlockQ8_0> blocks() const {
        std::vector<BlockQ8_0> blocks;
        for (size_t i = 0; i < w_.size(); i += kGroup) blocks.push_back(pack_q8_0(&w_[i]));
        return blocks;
    }
    std::vector<BlockI8G32> packed_x() const {
        std::vector<BlockI8G32> blocks;
        for (size_t i = 0; i < x_.size(); i += kGroup) blocks.push_back(pack_i8g32(&x_[i]));
        return blocks;
    }

    Backend& device_;
    cpu::Pool& pool_;
    DType type_;
    Size size_;
    int columns_;
    size_t copies_ = 0;
    std::vector<uint16_t> halves_;
    std::vector<float> w_, x_;
    std::vector<Buffer> memory_;
    std::vector<std::unique_ptr<Weight>> ours_;
    Tensor our_x_, out_;
    std::vector<Contender> contenders_;
};

void compare(int rounds, int threads, const std::string& only) {
#ifdef AERIE_OPENBLAS
    openblas_set_num_threads(1);  // per part: its own threads would spin beside ours
#endif
    const auto device = open_device("cpu", {.threads = threads});
    device->reserve({.rows = 64, .widest = 2048});
    cpu::Pool pool(device->capabilities().threads);
    std::printf("%s\n", device->capabilities().description.c_str());
    for (const DType type : {DType::F32, DType::F16, DType::Q8_0}) {
        if (!only.empty() && only != name(type)) continue;
        for (const Size& size : kSizes)
            for (const int columns : kColumns) {
                Cell cell(*device, pool, type, size, columns);
                for (int i = 0; i < rounds; ++i) {
                    cell.round();
                    if (i == 0) cell.check();
                }
                cell.print();
            }
    }
}

}  // namespace

int main(int argc, char** argv) {
    try {
        const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
        compare(argc > 1 ? std::max(1, std::atoi(argv[1])) : 15, threads, argc > 3 ? argv[3] : "");
    } catch (const std::exception& error) {
        std::fprintf(stderr, "bench_exactness: %s\n", error.what());
        return 1;
    }
}
