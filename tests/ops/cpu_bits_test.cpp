// CPU: every op gives the same bits on each instruction set, with any number of threads, and in any
// floating-point environment of the caller.
#include <cfenv>
#include <cstring>
#include <numeric>

#include "core/error.h"
#include "ops/op_inputs.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace aerie {

using namespace reference;

namespace {

// The results of all ops on fixed random inputs, as raw words.
class Fingerprint : OpInputs {
  public:
    explicit Fingerprint(Backend& be) : OpInputs(be) {
        be_.reserve({.rows = 64,
                     .top_k = 10,
                     .widest = 1100,
                     .vocab = 5000,
                     .context = 256,
                     .heads = 4,
                     .head_dim = 48});
    }

    std::vector<uint32_t> take() {
        words_.clear();
        rows_ops();
        for (int rows : {1, 3, 23}) matmuls(rows), quantised_matmuls(rows);
        attentions();
        choices();
        beams();
        return words_;
    }

  private:
    void record(Tensor t) {
        std::vector<std::byte> bytes(dense_bytes(t.dtype, t.rows, t.cols));
        be_.read(t, bytes.data());
        bytes.resize((bytes.size() + 3) / 4 * 4);
        const size_t before = words_.size();
        words_.resize(before + bytes.size() / 4);
        std::memcpy(words_.data() + before, bytes.data(), bytes.size());
    }

    void rows_ops() {
        // Denormal inputs, too: a flushed one would show.
        for (float deviation : {1.0f, 1e-41f, 1e20f}) {
            const Tensor x = random(90, 1100, 1, deviation), out = tensor(DType::F32, 90, 1100);
            be_.run(RmsNorm{out, x, random(1, 1100, 2), 1e-12f});
            record(out);
            be_.run(Add{out, x, random(90, 1100, 3, deviation)});
            record(out);
            const Tensor half = tensor(DType::F32, 90, 550);
            be_.run(Gated{half, x, Activation::silu});
            record(half);
        }
    }

    void matmuls(int rows) {
        for (DType type : {DType::F32, DType::F16, DType::BF16})
            for (float deviation : {1.0f, 1e-39f}) {
                const Matrix values = calm_random_matrix(77, 1100, 4, 3e-5f);
                const WeightBlock block{DType::F32, type, values.data.data(), 77, 1100};
                const auto weight = be_.upload_weight({&block, 1});
                const Tensor out = tensor(DType::F32, rows, 77);
                be_.run(Matmul{out, random(rows, 1100, 5, deviation), *weight, Accumulate::no,
                               random(1, 77, 6, deviation)});
                be_.run(Matmul{out, random(rows, 1100, 7, deviation), *weight, Accumulate::yes});
                record(out);
            }
    }

    void quantised_matmuls(int rows) {
        for (DType type : {DType::Q8_0, DType::Q4_0}) {
            const Matrix values = calm_random_matrix(77, 1088, 12, 0.05f);
            const WeightBlock block{DType::F32, type, values.data.data(), 77, 1088};
            const auto weight = be_.upload_weight({&block, 1});
            const Tensor out = tensor(DType::F32, rows, 77), x = tensor(DType::I8G32, rows, 1088);
            be_.run(Copy{x, random(rows, 1088, 13)});
            record(x);
            be_.run(Matmul{out, x, *weight, Accumulate::no, random(1, 77, 14)});
            be_.run(Copy{x, random(rows, 1088, 15, 1e-6f)});
            be_.run(Matmul{out, x, *weight, Accumulate::yes});
            record(out);
        }
    }

    void attentions() {
        const AttentionShape shape{4, 2, 48};
        constexpr float kScale = 0.1443f;  // a constant, whatever the environment
        for (DType type : {DType::F32, DType::F16}) {
            KvLayer kv{tensor(type, 256, 96), tensor(type, 256, 96), tensor(DType::I32, 1, 4)};
            const int32_t pages[] = {2, 0, 3, 1};
            be_.write(kv.page_table, pages);
            std::vector<Row> rows(150);
            for (int i = 0; i < 150; ++i) rows[size_t(i)] = {.position = i, .slot = i, .prefix = i};
            const Tensor qkv = random(150, 8 * 48, 8), out = tensor(DType::F32, 150, 192);
            const Rows block{blocks(rows)};
            be_.run(RopeAppend{qkv, random(150, 48, 9), block, shape, kv});
            be_.run(Attention{out, qkv, block, shape, kv, kScale});
            record(qkv);
            record(out);
            record(kv.k);
            // Few rows, of which threads share the chunks.
            rows[148].slot = -1;
            for (int window : {0, 70})
                for (int count : {1, 2, 3, 5})
                    for (DType out_type : {DType::F32, DType::I8G32}) {
                        const Tensor few = tensor(out_type, count, 192);
                        const Rows last{blocks(std::vector<Row>(rows.end() - count, rows.end()))};
                        be_.run(Attention{few, qkv.row_range(150 - count, count), last, shape, kv,
                                          kScale, window});
                        record(few);
                    }
        }
    }

    void choices() {
        const Tensor logits = random(11, 5000, 10, 3), noise_rows = tensor(DType::F32, 4, 5000);
        std::vector<int32_t> positions = {3, 4, 5, 6};
        const Tensor places = tensor(DType::I32, 1, 4);
        be_.write(places, positions.data());
        be_.run(Noise{noise_rows, 99, places});
        record(noise_rows);
        std::vector<Row> rows(11);
        for (int i = 0; i < 11; ++i) rows[size_t(i)].position = i % 4;
        const Tensor seen = tensor(DType::I32, 1, 5000);
        std::vector<int32_t> words(5000);
        words[7] = kInPrompt, words[9] = 3 * kPutOut;
        be_.write(seen, words.data());
        for (const Filters& filters :
             {Filters{}, Filters{.temperature = 1},
              Filters{.temperature = 0.7f, .top_k = 90, .top_p = 0.9f},
              Filters{.temperature = 1.3f, .top_p = 0.99f, .min_p = 1e-4f}}) {
            const std::vector<RowChoice> rules = {RowChoice(filters, {1.3f, 0.1f, -0.2f})};
            const Choice choice{logits,
                                {blocks(rules), seen, filters.top_k > 0, filters.top_p < 1}};
            const Tensor ids = tensor(DType::I32, 1, 11);
            Sample sample{ids, choice, {blocks(rows)}};
            if (filters.temperature > 0) sample.noise = noise_rows;
            be_.run(sample);
            record(ids);
            for (bool noisy : {false, true}) {
                TopK step;
                step.choice = choice;
                if (noisy) step.noise = noise_rows.row_range(1, 1);
                step.ids = tensor(DType::I32, 11, 10);
                step.log_probs = tensor(DType::F32, 11, 10);
                be_.run(step);
                record(step.ids);
                record(step.log_probs);
            }
        }
    }

    void beams() {
        Beam step;
        step.ids = tensor(DType::I32, 5, 10);
        step.log_probs = random(5, 10, 11);
        step.rows = {blocks(std::vector<Row>(5))};
        step.frontier = tensor(DType::I32, 1, 8);
        step.table = tensor(DType::I32, 60, kCandidateInts);
        step.parent_row = tensor(DType::I32, 1, 8);
        step.next = {blocks(std::vector<Row>(8))};
        step.table_offset = 10;
        be_.run(step);
        record(step.table);
        record(step.frontier);
        record(step.next.block);
    }

    std::vector<uint32_t> words_;
};

std::vector<uint32_t> fingerprint(const std::string& isa, int threads) {
    const auto backend = open_cpu_isa(isa, threads);
    return backend ? Fingerprint(*backend).take() : std::vector<uint32_t>();
}

// The first word that differs, for the message.
size_t difference(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
    return size_t(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

class CpuBits : public testing::TestWithParam<const char*> {};

TEST_P(CpuBits, EqualThePortableOnes) {
    if (!open_cpu_isa(GetParam(), 1)) GTEST_SKIP() << "SKIPPED: no " << GetParam() << " here";
    const std::vector<uint32_t> want = fingerprint("portable", 1);
    for (int threads : {1, 2, 3}) {
        const std::vector<uint32_t> got = fingerprint(GetParam(), threads);
        EXPECT_EQ(difference(got, want), want.size()) << threads << " threads";
    }
}

#if defined(__x86_64__)
TEST_P(CpuBits, DoNotDependOnTheCallersEnvironment) {
    if (!open_cpu_isa(GetParam(), 1)) GTEST_SKIP() << "SKIPPED: no " << GetParam() << " here";
    const std::vector<uint32_t> want = fingerprint(GetParam(), 2);
    const unsigned before = _mm_getcsr();
    const unsigned hostile = 0x1f80 | 0x8000 | 0x0040 | 0x4000;  // FTZ, DAZ, round up
    _mm_setcsr(hostile);
    const std::vector<uint32_t> got = fingerprint(GetParam(), 2);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    EXPECT_EQ(after & 0xffc0u, hostile & 0xffc0u);
    EXPECT_EQ(difference(got, want), want.size());
}
#endif

INSTANTIATE_TEST_SUITE_P(Isas, CpuBits,
                         testing::Values("portable", "avx2", "avxvnni", "avx512", "amx"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace aerie
