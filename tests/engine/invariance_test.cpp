// The invariance contract on the whole target (architecture.md, "The invariance contract"): a row's
// logits have the same bits at every M, in any slot and tree, with every cutting of the prompt, on
// every instruction set and thread count, whatever floating-point mode the caller is in.
#include <gtest/gtest.h>

#include <numeric>
#include <tuple>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "engine/checks.h"
#include "engine/hidden_path.h"
#include "engine/reach.h"

namespace aerie::test {
namespace {

constexpr DType kTypes[] = {DType::F32,  DType::F16,  DType::BF16, DType::Q8_0,
                            DType::Q4_0, DType::Q4_K, DType::Q5_K, DType::Q6_K};

Bundled open_bundled(DType type, Reach reach) {
    const LoadOptions options = bundled_options(type);
    ModelFiles files = ModelFiles::open(options);
    change(files, reach);
    return {std::move(files), options, open_device(options.device)};
}

// A weight type, what the rows reach back to, and the number of tokens before the tree.
using TreeCase = std::tuple<DType, Reach, int>;
class Trees : public testing::TestWithParam<TreeCase> {
    void SetUp() override { skip_unless_stored(std::get<DType>(GetParam())); }
};

TEST_P(Trees, RowsOfAny) {
    const auto [type, reach, first] = GetParam();
    Bundled model = open_bundled(type, reach);
    std::mt19937 random(11);
    const Plain plain = decode_plainly(model.model(), long_text(), first, kMaxDepth + 1);
    auto drafting = model.drafting(widest());
    Session& session = *drafting.session;
    std::vector<int32_t> pages(size_t(session.kv().layer(0).page_table.cols));
    std::iota(pages.begin(), pages.end(), 0);
    int rows = 0;
    for (int m = 1; m <= kMaxNodes; ++m) {
        std::shuffle(pages.begin(), pages.end(), random);
        session.begin({});
        session.kv().order_free_pages(pages);
        session.prefill(plain.prompt());
        const Hidden hidden = hide_path(plain, m, model.target().config().vocab, random);
        session.verify(hidden.tree);
        for (size_t d = 0; d < hidden.path.size(); ++d, ++rows)
            EXPECT_TRUE(same_bits(read_logits(model, session, hidden.path[d]), plain.logits[d]))
                << "M = " << m << ", depth " << d;
    }
    std::printf("%d rows in trees of 1..64 nodes, permuted pages\n", rows);
}

std::string name_of(const testing::TestParamInfo<TreeCase>& info) {
    const auto [type, reach, first] = info.param;
    return std::string(name(type)) + (reach == Reach::whole ? "" : "_" + std::string(name(reach))) +
           "_after_" + std::to_string(first);
}

// After 120 tokens the tree straddles a chunk border of attention.
INSTANTIATE_TEST_SUITE_P(Types, Trees,
                         testing::Combine(testing::ValuesIn(kTypes), testing::Values(Reach::whole),
                                          testing::Values(5, 40, 120)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Reaches, Trees,
                         testing::Combine(testing::Values(DType::F16, DType::Q8_0, DType::Q4_0),
                                          testing::Values(Reach::windows, Reach::yarn),
                                          testing::Values(40, 120)),
                         name_of);

class Invariance : public testing::TestWithParam<DType> {
    void SetUp() override { skip_unless_stored(GetParam()); }
};

TEST_P(Invariance, KvAfterAcceptanceIsPlains) {
    // Hidden paths of random length are accepted again and again; the logits stay plain decoding's.
    Bundled model(bundled_options(GetParam()));
    const int first = 30, count = 150;
    const Plain plain = decode_plainly(model.model(), long_text(), first, count);
    auto drafting = model.drafting(widest());
    Session& session = *drafting.session;
    std::mt19937 random(5);
    session.begin({});
    session.prefill(plain.prompt());
    int cycles = 0;
    for (int done = 0; done + kMaxDepth + 1 < count; ++cycles) {
        Plain rest{plain.tokens, first + done,
                   std::vector<Logits>(plain.logits.begin() + done, plain.logits.end())};
        const Hidden hidden =
            hide_path(rest, 2 + int(random() % 63), model.target().config().vocab, random);
        session.verify(hidden.tree);
        for (size_t d = 0; d < hidden.path.size(); ++d)
            ASSERT_TRUE(same_bits(read_logits(model, session, hidden.path[d]), rest.logits[d]));
        const size_t accepted = random() % hidden.path.size();
        const DepthList<int> nodes(std::span(hidden.path).first(accepted + 1));
        session.commit(hidden.tree, {nodes, rest.tokens[size_t(rest.first) + accepted + 1]});
        done += int(accepted) + 1;
    }
    EXPECT_GT(cycles, 10);
}

TEST_P(Invariance, EveryCuttingOfThePrompt) {
    Bundled model(bundled_options(GetParam()));
    const std::vector<int> tokens = long_text();
    const std::vector<int> prompt(tokens.begin(), tokens.begin() + 150);
    Logits want;
    for (int rows : {kPrefillRows, 1, 2, 3, 5, 7, 16, 31, 63, 64, 65, 100}) {
        BatchLimits limits = model.limits();
        limits.prefill_rows = rows;
        auto drafting = model.drafting(draft_options("none"), limits);
        drafting.session->begin({});
        drafting.session->prefill(prompt);
        const Logits logits = read_logits(model, *drafting.session, 0);
        if (want.empty()) want = logits;
        EXPECT_TRUE(same_bits(logits, want)) << rows << " rows a pass";
    }
}

INSTANTIATE_TEST_SUITE_P(Types, Invariance, testing::ValuesIn(kTypes),
                         [](const auto& info) { return std::string(name(info.param)); });

// Logits and a sampled EAGLE-2 text on one machine configuration.
struct Outcome {
    Logits logits;
    std::vector<int> ids;
};

Outcome run(int threads, DType type, const std::string& device = "cpu") {
    LoadOptions options = bundled_options(type);
    options.device = device;
    options.threads = threads;
    Bundled model(options);
    auto drafting = model.drafting(draft_options("eagle2"));
    Outcome outcome;
    outcome.ids = model
                      .run(*drafting.session, model.request(model.encode(sixty_prompts()[3]), 12,
                                                            sampling_at(0.8f, 3)))
                      .ids;
    outcome.logits = read_logits(model, *drafting.session, 0);
    return outcome;
}

void expect_same(const Outcome& a, const Outcome& b, const std::string& what) {
    EXPECT_TRUE(same_bits(a.logits, b.logits)) << what;
    EXPECT_EQ(a.ids, b.ids) << what;
}

// Tests of the CPU alone: thread counts and floating-point modes mean nothing to another device.
class Machine : public testing::Test {
  protected:
    void SetUp() override {
        if (test_device() != "cpu") GTEST_SKIP() << "SKIPPED: these are settings of the CPU";
    }
};

TEST_F(Machine, ThreadCounts) {
    const Outcome want = run(1, DType::F16);
    for (int threads : {2, 3}) expect_same(run(threads, DType::F16), want, std::to_string(threads));
}

class InstructionSet : public testing::TestWithParam<const char*> {};

TEST_P(InstructionSet, HasTheBitsOfTheOthers) {
    if (test_device() != "cpu") GTEST_SKIP() << "SKIPPED: these are settings of the CPU";
    const std::string device = std::string("cpu:") + GetParam();
    try {
        open_device(device, {1});
    } catch (const Error& error) {
        GTEST_SKIP() << "SKIPPED: " << error.what();
    }
    for (DType type : kTypes) expect_same(run(2, type, device), run(2, type), name(type));
}

INSTANTIATE_TEST_SUITE_P(Machine, InstructionSet,
                         testing::Values("portable", "avx2", "avxvnni", "avx512", "amx"),
                         [](const auto& info) { return std::string(info.param); });

#if defined(__x86_64__)
TEST_F(Machine, CallersFloatingPointMode) {
    const Outcome want = run(2, DType::F16);
    const unsigned before = _mm_getcsr();
    const unsigned odd = before | 0x8040;  // flush to zero, denormals are zero
    _mm_setcsr(odd);
    const Outcome got = run(2, DType::F16);
    const unsigned after = _mm_getcsr();
    _mm_setcsr(before);
    expect_same(got, want, "flush-to-zero");
    EXPECT_EQ(after & 0xffc0, odd & 0xffc0);
}
#endif

}  // namespace
}  // namespace aerie::test
