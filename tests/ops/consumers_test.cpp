// Results that an op leaves for the matmuls that read its output (Consumers in ops.h) are gone when
// the pass ends, normally or by an exception; and consumers multiply the output as an observer left
// it.
#include "backend/observed.h"
#include "core/error.h"
#include "ops/attention_fixture.h"

namespace aerie {

using reference::Matrix;
using reference::random_matrix;

namespace {

constexpr int kInner = 416, kOutputs = 48, kMaxRows = 8;
constexpr DType kTypes[] = {DType::F32, DType::F16, DType::BF16, DType::Q8_0, DType::Q4_0};

// A weight and its activations on one device. The activations are in one place, whatever the number
// of rows, as they are in a session's buffers.
class ConsumersTest : public AttentionTest {
  protected:
    struct Product {
        std::unique_ptr<Weight> weight;
        Array scale, x, activations, out;
    };

    Product product_of(DType type) {
        Product made{upload_weight(random_matrix(kOutputs, kInner, 1), type),
                     upload(random_matrix(1, kInner, 2)),
                     poisoned(kMaxRows, kInner),
                     {},
                     poisoned(kMaxRows, kOutputs)};
        made.activations = activations_for(*made.weight, kInner);
        return made;
    }
    Array activations_for(const Weight& consumer, int cols) {
        return backend_->activation_type(consumer) == DType::I8G32
                   ? poisoned_activations(kMaxRows, cols)
                   : poisoned(kMaxRows, cols);
    }

    static Tensor first_rows(const Array& array, int rows) {
        return array.tensor.row_range(0, rows);
    }

    void write(const Tensor& to, const Matrix& values) {
        if (to.dtype == DType::I8G32)
            backend_->write(to, packed_groups(values, pack_i8g32).data());
        else
            backend_->write(to, values.data.data());
    }

    // Normalises the rows in p.x.
    void norm(const Product& p, int rows, const Consumers& consumers) {
        backend_->run(RmsNorm{first_rows(p.activations, rows), first_rows(p.x, rows), p.scale,
                              1e-5f, consumers});
    }
    void multiply(const Product& p, int rows) {
        backend_->run(Matmul{first_rows(p.out, rows), first_rows(p.activations, rows), *p.weight});
    }
    Matrix product(const Product& p, int rows) {
        Matrix values(rows, kOutputs);
        backend_->read(first_rows(p.out, rows), values.data.data());
        return values;
    }

    // The activations of a weight of this type, or the rows that they are the norm of; and the
    // product.
    struct Case {
        DType type;
        Matrix x, want;
    };
    // The cases are computed on fresh tensors, for which nothing was left.
    std::vector<Case> make_cases(bool has_norm) {
        std::vector<Case> cases;
        for (DType type : kTypes)
            for (int rows : {1, 3, kMaxRows}) {
                const Product p = product_of(type);
                const Matrix x = random_matrix(rows, kInner, 4, has_norm ? 1 : 100);
                write(first_rows(has_norm ? p.x : p.activations, rows), x);
                if (has_norm) norm(p, rows, {});
                multiply(p, rows);
                cases.push_back({type, x, product(p, rows)});
            }
        return cases;
    }

    // leave(p, rows, key) leaves this many rows to p.weight in a pass that then ends. Afterwards
    // other activations of the same weight, in the same place, are multiplied as they are.
    template <class Leave>
    void expect_nothing_left(const Leave& leave) {
        for (const Case& its : make_cases(false))
            for (int left : {1, kMaxRows}) {
                SCOPED_TRACE(std::string(name(its.type)) + ", " + std::to_string(left) +
                             " rows left, then " + std::to_string(its.x.rows));
                const Product p = product_of(its.type);
                const uint64_t key = new_key();
                for (int times = 0; times < 3; ++times) {  // run, recorded and resubmitted
                    write(first_rows(p.x, left), random_matrix(left, kInner, 3));
                    leave(p, left, key);
                    write(first_rows(p.activations, its.x.rows), its.x);
                    multiply(p, its.x.rows);
                    ASSERT_TRUE(same_bits(product(p, its.x.rows), its.want)) << times;
                }
            }
    }
};

// The matmul after a norm never runs: the next norm and its matmul, with any number of rows, with
// or without consumers, have the bits that they have on a fresh device.
TEST_P(ConsumersTest, NormsThatNobodyReadChangeNoLaterOne) {
    for (const Case& its : make_cases(true))
        for (int left : {1, kMaxRows}) {
            SCOPED_TRACE(std::string(name(its.type)) + ", " + std::to_string(left) +
                         " rows left, then " + std::to_string(its.x.rows));
            const Product p = product_of(its.type);
            for (bool has_consumers : {false, true}) {
                write(first_rows(p.x, left), random_matrix(left, kInner, 3));
                norm(p, left, {p.weight.get()});
                const Array x = upload(its.x);
                backend_->run(RmsNorm{first_rows(p.activations, its.x.rows), x, p.scale, 1e-5f,
                                      has_consumers ? Consumers{p.weight.get()} : Consumers{}});
                multiply(p, its.x.rows);
                ASSERT_TRUE(same_bits(product(p, its.x.rows), its.want)) << has_consumers;
            }
        }
}

TEST_P(ConsumersTest, APassThatEndsLeavesNothing) {
    expect_nothing_left([&](const Product& p, int rows, uint64_t key) {
        backend_->replay(key, [&] { norm(p, rows, {p.weight.get()}); });
    });
}

TEST_P(ConsumersTest, APassThatThrowsLeavesNothing) {
    expect_nothing_left([&](const Product& p, int rows, uint64_t key) {
        const auto pass = [&] {
            norm(p, rows, {p.weight.get()});
            throw Error("amid a pass");
        };
        EXPECT_THROW(backend_->replay(key, pass), Error);
    });
}

// A pass finds nothing that was left before it.
TEST_P(ConsumersTest, APassBeginsWithNothing) {
    for (const Case& its : make_cases(false)) {
        SCOPED_TRACE(std::string(name(its.type)) + ", " + std::to_string(its.x.rows) + " rows");
        const Product p = product_of(its.type);
        write(p.x, random_matrix(kMaxRows, kInner, 3));
        norm(p, its.x.rows, {p.weight.get()});
        write(first_rows(p.activations, its.x.rows), its.x);
        backend_->replay(new_key(), [&] { multiply(p, its.x.rows); });
        ASSERT_TRUE(same_bits(product(p, its.x.rows), its.want));
    }
}

// New scratch holds nothing of the old scratch.
TEST_P(ConsumersTest, NewScratchHoldsNothing) {
    for (const Case& its : make_cases(false)) {
        SCOPED_TRACE(std::string(name(its.type)) + ", " + std::to_string(its.x.rows) + " rows");
        const Product p = product_of(its.type);
        write(p.x, random_matrix(kMaxRows, kInner, 3));
        norm(p, its.x.rows, {p.weight.get()});
        backend_->reserve({.widest = backend_->reserved().widest + 32});
        write(first_rows(p.activations, its.x.rows), its.x);
        multiply(p, its.x.rows);
        ASSERT_TRUE(same_bits(product(p, its.x.rows), its.want));
    }
}

// With one row a device may keep the gated products in the form that the next matmul needs.
TEST_P(ConsumersTest, APassThatEndsLeavesNothingOfAGate) {
    for (DType type : {DType::F16, DType::BF16, DType::Q8_0}) {
        const auto down = [&] { return upload_weight(random_matrix(40, kOutputs * 2, 6), type); };
        const Matrix values = random_matrix(4 * kOutputs, kInner, 5);
        const WeightBlock blocks[] = {
            {DType::F32, type, values[0], 2 * kOutputs, kInner},
            {DType::F32, type, values[2 * kOutputs], 2 * kOutputs, kInner}};
        const auto both = backend_->upload_weight(blocks, WeightUse::gated);
        const auto consumer = down();
        const Array x = upload(random_matrix(1, kInner, 7), backend_->activation_type(*both));
        const Array gated = activations_for(*consumer, 2 * kOutputs);
        const Array scratch = poisoned(1, 4 * kOutputs), out = poisoned(1, 40);
        const Tensor input = first_rows(gated, 1);
        const Matrix large = random_matrix(1, 2 * kOutputs, 8, 1e6f);
        const auto product = [&](const Weight& w) {
            write(input, large);
            backend_->run(Matmul{out, input, w});
            return download(out);
        };
        const Matrix want = product(*down());
        const uint64_t key = new_key();
        for (int times = 0; times < 3; ++times) {
            backend_->replay(key, [&] {
                backend_->run(MatmulGated{first_rows(gated, 1),
                                          scratch,
                                          x,
                                          *both,
                                          Activation::silu,
                                          {},
                                          {consumer.get()}});
            });
            ASSERT_TRUE(same_bits(product(*consumer), want)) << name(type) << ", " << times;
        }
    }
}

// An observer may replace an output; its consumers multiply the replacement.
class ObservedConsumersTest : public ConsumersTest {
  protected:
    void SetUp() override {
        ConsumersTest::SetUp();
        if (!backend_) return;
        auto decorated = std::make_unique<ObservedBackend>(std::move(backend_));
        observed_ = decorated.get();
        backend_ = std::move(decorated);
    }
    void TearDown() override { backend_.reset(); }  // the next test shall have no observer

    // run(out, consumers) runs an op; its output, [rows, cols], is then replaced by larger values.
    template <class Run>
    void expect_replaced(const char* op, DType type, int rows, int cols, const Run& run) {
        SCOPED_TRACE(std::string(op) + ", " + name(type) + ", " + std::to_string(rows) + " rows");
        const auto weight = upload_weight(random_matrix(kOutputs, cols, 1), type);
        const Array activations = activations_for(*weight, cols);
        const Tensor input = first_rows(activations, rows);
        const Matrix large = random_matrix(rows, cols, 9, 1e6f);
        const Array out = poisoned(rows, kOutputs);
        const auto product = [&] {
            backend_->run(Matmul{out, input, *weight});
            return download(out);
        };
        write(input, large);
        const Matrix want = product();
        int seen = 0;
        observed_->observe([&](const ObservedBackend::Seen& its) {
            if (its.op != op) return;
            ++seen;
            write(its.out, large);
        });
        run(input, Consumers{weight.get()});
        const Matrix got = product();
        observed_->observe({});
        EXPECT_EQ(seen, 1);
        EXPECT_TRUE(same_bits(got, want));
    }

    ObservedBackend* observed_ = nullptr;
};

TEST_P(ObservedConsumersTest, OfNorms) {
    const Array scale = upload(random_matrix(1, kInner, 2));
    for (DType type : kTypes)
        for (int rows : {1, kMaxRows}) {
            const Array x = upload(random_matrix(rows, kInner, 3));
            expect_replaced("rms_norm", type, rows, kInner,
                            [&](const Tensor& out, const Consumers& consumers) {
                                backend_->run(RmsNorm{out, x, scale, 1e-5f, consumers});
                            });
        }
}

TEST_P(ObservedConsumersTest, OfGates) {
    const Matrix values = random_matrix(4 * kOutputs, kInner, 5);
    const WeightBlock blocks[] = {
        {DType::F32, DType::F16, values[0], 2 * kOutputs, kInner},
        {DType::F32, DType::F16, values[2 * kOutputs], 2 * kOutputs, kInner}};
    const auto both = backend_->upload_weight(blocks, WeightUse::gated);
    for (DType type : kTypes)
        for (int rows : {1, kMaxRows}) {
            const Array x = upload(random_matrix(rows, kInner, 3));
            const Array scratch = poisoned(rows, 4 * kOutputs);
            expect_replaced("gated", type, rows, 2 * kOutputs,
                            [&](const Tensor& out, const Consumers& consumers) {
                                backend_->run(MatmulGated{
                                    out, scratch, x, *both, Activation::silu, {}, consumers});
                            });
        }
}

TEST_P(ObservedConsumersTest, OfAttention) {
    use({4, 2, 64});
    const Cache cache = make_cache(shape_, DType::F16, plain_pages());
    prefill(random_qkv(3, 1), 3, cache);
    for (DType type : kTypes)
        for (int rows : {1, kMaxRows}) {
            const Array qkv = upload(random_qkv(rows, 2));
            const Rows block = upload(chain(3, rows));
            backend_->run(RopeAppend{qkv, rope_, block, shape_, cache.layer});
            expect_replaced("attention", type, rows, shape_.heads * shape_.head_dim,
                            [&](const Tensor& out, const Consumers& consumers) {
                                backend_->run(Attention{out, qkv, block, shape_, cache.layer,
                                                        scale_, 0, consumers});
                            });
        }
}

INSTANTIATE_TEST_SUITE_P(Devices, ConsumersTest, testing::ValuesIn(devices()), device_name);
INSTANTIATE_TEST_SUITE_P(Devices, ObservedConsumersTest, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
