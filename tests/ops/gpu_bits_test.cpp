// GPUs have the bits of the CPU in every op with canonical arithmetic (architecture.md, "The
// invariance contract"): all but products with float weights, on CUDA the attention that these
// read, and probabilities themselves.
#include <array>
#include <cstring>
#include <map>

#include "ops/op_inputs.h"

namespace aerie {

using namespace reference;

namespace {

constexpr AttentionShape kShape{6, 2, 32};
constexpr int kVocab = 9000;  // three slices of a row on Vulkan

// The results of ops on fixed random inputs, as words by name.
class OpResults : OpInputs {
  public:
    explicit OpResults(Backend& be) : OpInputs(be) {
        be_.reserve({.rows = 64,
                     .top_k = kMaxTopK,
                     .widest = 1280,
                     .vocab = kVocab,
                     .context = 256,
                     .heads = 6,
                     .head_dim = 32});
    }

    using Words = std::vector<uint32_t>;

    // `quantised`: the quantised weight types to try.
    std::map<std::string, Words> take(const std::vector<DType>& quantised) {
        for (DType type : {DType::F32, DType::F16, DType::BF16}) embeds(type);
        for (DType type : quantised) embeds(type);
        for (DType type : {DType::F32, DType::I8G32}) row_ops(type);
        for (DType type : quantised)
            for (int rows : {1, 3, 23}) matmuls(type, rows);
        for (DType cache : {DType::F32, DType::F16})
            for (DType out : {DType::F32, DType::I8G32}) attentions(cache, out);
        choices();
        beams(5, 10, 8, true), beams(64, 32, 64, true), beams(1, 7, 7, false);
        return std::move(results_);
    }

  private:
    Tensor index(const std::vector<int32_t>& values) {
        const Tensor t = tensor(DType::I32, 1, int(values.size()));
        be_.write(t, values.data());
        return t;
    }
    void record(const std::string& what, const Tensor& t) {
        std::vector<std::byte> bytes((dense_bytes(t.dtype, t.rows, t.cols) + 3) / 4 * 4);
        be_.read(t, bytes.data());
        Words& words = results_[what];
        const size_t before = words.size();
        words.resize(before + bytes.size() / 4);
        std::memcpy(words.data() + before, bytes.data(), bytes.size());
    }
    std::unique_ptr<Weight> weight(DType type, int rows, int cols, unsigned seed,
                                   WeightUse use = WeightUse::multiply) {
        values_.push_back(random_matrix(rows, cols, seed, 0.05f));
        const WeightBlock block{DType::F32, type, values_.back().data.data(), rows, cols};
        return be_.upload_weight({&block, 1}, use);
    }

    void embeds(DType type) {
        const auto table = weight(type, 77, 256, 20, WeightUse::lookup);
        std::vector<Row> rows(5);
        for (int i = 0; i < 5; ++i) rows[size_t(i)].token = i * 19;
        rows[3].slot = -1;
        const Tensor out = tensor(DType::F32, 5, 256);
        be_.run(Embed{out, *table, {blocks(rows)}});
        record(std::string("embed ") + name(type), out);
    }

    void row_ops(DType type) {
        const std::string to = std::string(" to ") + name(type);
        for (float deviation : {1.0f, 1e-6f, 1e15f}) {
            const Tensor x = random(33, 1088, 1, deviation), out = tensor(type, 33, 1088);
            be_.run(RmsNorm{out, x, random(1, 1088, 2), 1e-12f});
            record("rms_norm" + to, out);
            be_.run(Copy{out, x});
            record("copy" + to, out);
            const Tensor half = tensor(type, 33, 544);
            be_.run(Gated{half, x, Activation::silu});
            record("swiglu" + to, half);
            const Tensor sum = tensor(DType::F32, 33, 1088);
            be_.run(Add{sum, x, random(33, 1088, 3, deviation)});
            record("add", sum);
            const Tensor gathered = tensor(DType::F32, 3, 1088);
            be_.run(GatherRows{gathered, x, index({7, 0, 32})});
            record("gather_rows", gathered);
        }
    }

    void matmuls(DType type, int rows) {
        const auto w = weight(type, 77, 1280, 12);
        const Tensor out = tensor(DType::F32, rows, 77), x = tensor(DType::I8G32, rows, 1280);
        be_.run(Copy{x, random(rows, 1280, 13)});
        be_.run(Matmul{out, x, *w, Accumulate::no, random(1, 77, 14)});
        record(std::string("matmul ") + name(type), out);
        be_.run(Matmul{out, x, *w, Accumulate::yes});
        record(std::string("matmul ") + name(type) + ", added", out);
    }

    void attentions(DType cache, DType type) {
        const std::string what = std::string(name(cache)) + " to " + name(type);
        const int wide = (kShape.heads + 2 * kShape.kv_heads) * kShape.head_dim;
        const int kv_cols = kShape.kv_heads * kShape.head_dim;
        const KvLayer kv{tensor(cache, 256, kv_cols), tensor(cache, 256, kv_cols),
                         blocks<std::array<int32_t, 4>>({{2, 0, 3, 1}})};
        std::vector<Row> rows(150);
        for (int i = 0; i < 150; ++i) rows[size_t(i)] = {.position = i, .slot = i, .prefix = i};
        const Tensor qkv = random(150, wide, 8);
        const Tensor out = tensor(type, 150, kShape.heads * kShape.head_dim);
        const Rows block{blocks(rows)};
        be_.run(RopeAppend{qkv, random(150, kShape.head_dim, 9), block, kShape, kv});
        be_.run(Attention{out, qkv, block, kShape, kv, kShape.usual_scale()});
        record("rope_append, rows, " + what, qkv);
        record("rope_append, keys, " + what, kv.k);
        record("rope_append, values, " + what, kv.v);
        record("attention, " + what, out);
        const std::vector<KvMove> moves = {{0, 103, 101}, {0, 110, 102}, {0, 149, 103}};
        be_.run(KvCompact{{&kv, 1}, blocks(moves)});
        record("kv_compact, " + what, kv.k);
    }

    // 40 rows, more than a GPU takes at once, with ties, penalties and a mask.
    void choices() {
        Matrix values = random_matrix(40, kVocab, 10, 3);
        for (int r = 0; r < 40; r += 5)
            for (int i = 0; i < kVocab; ++i) values[r][i] = 4 * float(int(values[r][i] / 4));
        const Tensor raw = tensor(DType::F32, 40, kVocab);
        be_.write(raw, values.data.data());
        const Tensor noise_rows = tensor(DType::F32, 4, kVocab);
        be_.run(Noise{noise_rows, 99, index({3, 4, 5, 6})});
        record("noise", noise_rows);
        const Tensor seen = tensor(DType::I32, 3, kVocab);
        std::vector<int32_t> words(size_t(3 * kVocab));
        for (size_t i = 0; i < words.size(); i += 3) words[i] = int32_t(i % 17);
        be_.write(seen, words.data());
        Tensor mask = tensor(DType::I32, 40, (kVocab + 31) / 32);
        be_.write(mask, random_matrix(40, mask.cols, 17).data.data());
        for (const Choice& choice :
             {Choice{raw}, Choice{raw, {{}, seen}}, Choice{raw, {{}, seen}, mask}})
            for (const Filters& filters :
                 {Filters{}, Filters{.temperature = 0.7f},
                  Filters{.temperature = 0.7f, .top_k = 90},
                  Filters{.temperature = 2, .top_k = 500, .top_p = 0.9f},
                  Filters{.temperature = 1.3f, .top_p = 0.99f, .min_p = 1e-4f}})
                choose(choice, noise_rows, filters);
    }

    void choose(Choice choice, const Tensor& noise_rows, const Filters& filters) {
        std::vector<RowChoice> rules;
        for (int i = 0; i < (choice.mask ? 40 : 1); ++i) {
            rules.push_back({filters, {0.3f + 0.1f * float(i), 0.7f - 0.1f * float(i), 0.3f}});
            rules.back().sequence = i % 3;
        }
        choice.rules.block = blocks(rules);
        choice.rules.include(filters);
        const bool noisy = filters.temperature > 0;
        const std::string how = !noisy                               ? ", greedy"
                                : filters.top_k || filters.top_p < 1 ? ", filtered"
                                                                     : ", noisy";
        std::vector<Row> rows(40);
        for (int i = 0; i < 40; ++i) rows[size_t(i)] = {.position = 9 + i % 4, .prefix = 9};
        rows[35].slot = -1;
        const Tensor ids = tensor(DType::I32, 1, 40);
        be_.run(Sample{ids, choice, {blocks(rows)}, noisy ? noise_rows : Tensor{}});
        record("sample" + how, ids);
        for (int k : {10, kMaxTopK}) {
            TopK step{.ids = tensor(DType::I32, 40, k),
                      .log_probs = tensor(DType::F32, 40, k),
                      .choice = choice};
            if (noisy) step.noise = noise_rows.row_range(1, 1);
            be_.run(step);
            record("top_k" + how, step.ids);
        }
    }

    // Values of few digits give ties.
    void beams(int rows, int k, int width, bool sums) {
        const int offset = 70;
        Beam step;
        step.ids = tensor(DType::I32, rows, k);
        Matrix values = random_matrix(rows, k, 11);
        for (float& v : values.data) v = float(int(v * 16)) / 16;
        std::vector<int32_t> ids(values.data.size()), frontier(kMaxFrontier);
        for (size_t i = 0; i < ids.size(); ++i) ids[i] = int32_t(i) * 7;
        for (int i = 0; i < kMaxFrontier; ++i) frontier[size_t(i)] = offset - 1 - i;
        be_.write(step.ids, ids.data());
        step.log_probs = tensor(DType::F32, rows, k);
        be_.write(step.log_probs, values.data.data());
        std::vector<Row> places(kMaxFrontier);
        for (int i = 0; i < kMaxFrontier; ++i)
            places[size_t(i)] = {.position = 12, .slot = 20 + i, .prefix = 10, .path = {11 + i}};
        step.rows = {blocks(places).row_range(0, rows)};
        const Tensor next = blocks(places);
        step.next = {next.row_range(0, width)};
        step.frontier = index(frontier);
        std::vector<Candidate> table(size_t(offset + rows * k));
        for (int i = 0; i < offset; ++i) table[size_t(i)].value = float(i % 9);
        step.table = blocks(table);
        step.parent_row = tensor(DType::I32, 1, width);
        step.table_offset = offset;
        step.next_slot = 5;
        step.sum_values = sums;
        be_.run(step);
        record("beam, table", step.table);
        record("beam, frontier", step.frontier);
        record("beam, parent rows", step.parent_row);
        record("beam, next rows", next);
    }

    std::deque<Matrix> values_;
    std::map<std::string, Words> results_;
};

std::vector<Device> gpus() {
    std::vector<Device> all = devices();
    std::erase_if(all, [](const Device& device) { return device.name.starts_with("cpu"); });
    return all;
}

class GpuBits : public testing::TestWithParam<Device> {};

TEST_P(GpuBits, EqualThoseOfTheCpu) {
    const auto gpu = GetParam().open(), cpu = open_cpu_isa("portable", 2);
    if (!gpu) GTEST_SKIP() << "SKIPPED: no " << GetParam().name << " here";
    std::vector<DType> types;
    for (DType type : {DType::Q8_0, DType::Q4_0, DType::Q4_K, DType::Q5_K, DType::Q6_K})
        if (gpu->stores(type)) types.push_back(type);
    auto want = OpResults(*cpu).take(types);
    if (GetParam().name.starts_with("cuda")) {
        ASSERT_EQ(want.erase("attention, f16 to f32"), 1u);
    }
    auto got = OpResults(*gpu).take(types);
    ASSERT_GT(want.size(), 40u);
    for (const auto& [what, words] : want) {
        const OpResults::Words& own = got[what];
        ASSERT_EQ(own.size(), words.size()) << what;
        size_t differ = 0, first = 0;
        for (size_t i = words.size(); i-- > 0;)
            if (own[i] != words[i]) ++differ, first = i;
        EXPECT_EQ(differ, 0u) << what << ": word " << first << " of " << words.size() << " is "
                              << std::hex << own[first] << " instead of " << words[first];
    }
}

INSTANTIATE_TEST_SUITE_P(Devices, GpuBits, testing::ValuesIn(gpus()), device_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GpuBits);

}  // namespace
}  // namespace aerie
