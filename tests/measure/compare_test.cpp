// `compare` on devices that are equal, that sum in another order, and that have a planted error:
// errors are found and named.
#include "measure/compare.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "engine/bundled.h"
#include "measure/verdict.h"

namespace aerie::test {
namespace {

constexpr int kOpsOfLayer = 9;

// Changes the output of an op; `op` counts from the pass's embedding.
using Plant = std::function<void(Backend& be, int op, std::string_view name, Tensor out)>;

std::unique_ptr<Backend> device(const Plant& plant = {}) {
    auto backend = std::make_unique<ObservedBackend>(open_device("cpu", {2}));
    if (!plant) return backend;
    Backend& be = *backend;
    backend->observe([plant, &be, op = 0](const ObservedBackend::Seen& seen) mutable {
        op = seen.op == "embed" ? 0 : op + 1;
        plant(be, op, seen.op, seen.out);
    });
    return backend;
}

// Rewrites an output as floats.
void rewrite(Backend& be, Tensor out, const std::function<void(std::vector<float>&)>& change) {
    OpValues values;
    values.read(be, out);
    std::vector<float> floats;
    values.floats(floats);
    change(floats);
    values.dtype = DType::F32;
    values.bytes.assign(reinterpret_cast<const std::byte*>(floats.data()),
                        reinterpret_cast<const std::byte*>(floats.data() + floats.size()));
    values.write(be, out);
}

// Changes the output of one op of one layer.
Plant plant_in(int layer, int op_of_layer, std::function<void(std::vector<float>&)> change) {
    return [=](Backend& be, int op, std::string_view, Tensor out) {
        if (op == 1 + layer * kOpsOfLayer + op_of_layer) rewrite(be, out, change);
    };
}

std::function<void(std::vector<float>&)> scale(float by) {
    return [by](std::vector<float>& values) {
        for (float& value : values) value *= by;
    };
}

// Noise as large as another order of summation leaves, in every op that sums. The noise of a value
// depends only on the value and its column, as the invariance contract requires.
Plant noise_of(float size) {
    return [size](Backend& be, int, std::string_view op, Tensor out) {
        if (op != "matmul" && op != "rms_norm" && op != "attention") return;
        rewrite(be, out, [&](std::vector<float>& values) {
            const size_t cols = size_t(out.cols);
            for (size_t row = 0; row < values.size(); row += cols) {
                double squares = 0;
                for (size_t i = row; i < row + cols; ++i) squares += double(values[i]) * values[i];
                const float step = size * float(std::sqrt(squares / double(cols)));
                for (size_t i = row; i < row + cols; ++i) {
                    const uint32_t mixed =
                        (std::bit_cast<uint32_t>(values[i]) ^ uint32_t(i - row)) * 2654435769u;
                    values[i] += step * (float(mixed >> 8) / float(1 << 23) - 1);
                }
            }
        });
    };
}

struct Judged {
    Comparison comparison;
    Verdict verdict;

    const Check& check(const std::string& name) const {
        for (const Check& check : verdict.checks)
            if (check.name == name && check.device == comparison.devices.back().name) return check;
        throw Error("no check named " + name);
    }
    const ComparedDevice& device() const { return comparison.devices.back(); }
    std::string failures() const {
        std::string text;
        for (const Check& check : verdict.checks)
            if (!check.passed) text += (text.empty() ? "" : ", ") + check.name;
        return text;
    }
};

struct Setting {
    DType weights = DType::F32;
    bool drafts = false;
    int max_tokens = 40;
    std::vector<std::string> prompts = {"USER: What is 3 times 14? ASSISTANT:"};
};

Judged compared(const std::vector<Plant>& plants, const Setting& setting = {}) {
    LoadOptions options = bundled_options(setting.weights);
    options.context = 512;
    options.draft = setting.drafts ? draft_options("eagle2") : draft_options("none");
    const Tokenizer tokenizer = Tokenizer::load(options.model);
    std::vector<std::unique_ptr<ComparedModel>> models;
    for (const Plant& plant : plants)
        models.push_back(
            std::make_unique<ComparedModel>(ModelFiles::open(options), options, device(plant)));
    CompareTask task;
    for (const std::string& prompt : setting.prompts) {
        std::vector<int> ids = tokenizer.encode(prompt);
        ids.insert(ids.begin(), tokenizer.bos());
        task.prompts.push_back(ids);
    }
    task.max_tokens = setting.max_tokens;
    task.eos_ids = {tokenizer.eos()};
    Judged judged;
    judged.comparison = compare(models, tokenizer, task);
    judged.verdict = judge(judged.comparison);
    return judged;
}

std::vector<std::string> with_cpu(std::vector<std::string> names) {
    names.insert(names.begin(), "cpu");
    return names;
}

// The i-th of `count` entries that are spread over all golden entries.
const Json& golden_entry(const Json& golden, size_t i, size_t count) {
    return golden.array()->at(i * golden.array()->size() / count);
}

TEST(Compare, ADeviceIsItself) {
    Setting setting;
    setting.drafts = true;
    setting.max_tokens = 80;  // more than one pass of rows
    setting.prompts.push_back("DESCRIPTION\nThis command prints");
    for (DType type : {DType::F16, DType::Q8_0}) {
        setting.weights = type;
        const Judged judged = compared({{}, {}}, setting);
        EXPECT_TRUE(judged.verdict.passed()) << judged.failures();
        const ComparedDevice& device = judged.device();
        EXPECT_TRUE(device.identical());
        EXPECT_EQ(device.ops.size(), 6u * kOpsOfLayer + (type == DType::Q8_0 ? 4 : 3));
        for (const ComparedOp& op : device.ops) {
            EXPECT_EQ(op.carried.relative(), 0);
            EXPECT_GT(op.alone.values, 0);
        }
        const KlSummary kl = summarise_kl(device);
        EXPECT_EQ(kl.mean, 0);
        EXPECT_EQ(kl.agreements, kl.positions);
        for (size_t i = 0; i < 2; ++i) {
            const ComparedText& text = device.texts[i];
            EXPECT_EQ(text.positions.size(),
                      judged.comparison.prompts[i].size() + text.ids.size() - 1);
            EXPECT_FALSE(text.fork || text.prefill_fork || text.drafted_fork);
            EXPECT_EQ(text.ids, judged.comparison.devices[0].texts[i].ids);
        }
        const Acceptance accepted = acceptance(device);
        EXPECT_GT(accepted.tau(), 2);
        EXPECT_EQ(accepted.by_depth, acceptance(judged.comparison.devices[0]).by_depth);
        EXPECT_GE(accepted.by_depth[0], accepted.by_depth[1]);
    }
}

TEST(Compare, AnotherOrderOfSummationPasses) {
    Setting setting;
    setting.drafts = true;
    for (DType type : {DType::F32, DType::F16, DType::Q8_0, DType::Q4_0}) {
        setting.weights = type;
        const Judged judged = compared({{}, noise_of(0x1p-22f)}, setting);
        std::printf("%s:", name(type));
        double alone = 0;
        for (const ComparedOp& op : judged.device().ops)
            alone = std::max(alone, op.alone.relative());
        const KlSummary kl = summarise_kl(judged.device());
        std::printf(" op %.2g, state %.2g, KL mean %.2g most %.2g, margin %.2g\n", alone,
                    final_state(judged.device())->carried.relative(), kl.mean, kl.most,
                    kl.worst_margin);
        EXPECT_FALSE(judged.device().identical());
        for (const Check& check : judged.verdict.checks)
            EXPECT_TRUE(check.passed) << name(type) << ": " << check.name << ": " << check.finding;
    }
}

TEST(Compare, NamesTheOpThatIsWrong) {
    // The error is so small that the text stays: only a comparison of ops can see it.
    const Judged judged = compared({{}, plant_in(3, 7, scale(1.0001f))});
    EXPECT_FALSE(judged.check("ops").passed);
    EXPECT_NE(judged.check("ops").finding.find("in layer 3, gated, the only op beyond"),
              std::string::npos)
        << judged.check("ops").finding;
    EXPECT_NEAR(judged.check("ops").value, 1e-4, 1e-6);
    EXPECT_TRUE(judged.check("text").passed);
    for (const ComparedOp& op : judged.device().ops) {
        const bool planted = op.place == OpPlace{3, "gated"};
        EXPECT_EQ(op.alone.identical(), !planted) << to_string(op.place);
        const int layer = op.place.layer;
        const bool before = layer >= 0 ? layer < 3 : op.place.name == "embedding";
        if (layer != 3) {
            EXPECT_EQ(op.carried.identical(), before) << to_string(op.place);
        }
    }
}

TEST(Compare, NamesEveryOpAndLayer) {
    const std::vector<std::string> names = {
        "attention norm", "qkv",     "rotation", "attention", "attention output",
        "ffn norm",       "gate_up", "gated",    "down"};
    Setting setting;
    setting.max_tokens = 1;
    for (int op = 0; op < kOpsOfLayer; ++op) {
        setting.weights = op % 2 ? DType::Q8_0 : DType::F32;
        const Judged judged = compared({{}, plant_in(op % 6, op, scale(1.05f))}, setting);
        const std::string finding = judged.check("ops").finding;
        EXPECT_NE(finding.find("in layer " + std::to_string(op % 6) + ", " + names[size_t(op)] +
                               ", the only op beyond"),
                  std::string::npos)
            << finding;
    }
}

// Each op of a pass has its own name and layer, which the model gives where it calls the op.
TEST(Compare, EveryOpHasItsPlace) {
    LoadOptions options = bundled_options(DType::Q8_0);
    options.draft = draft_options("none");
    const ComparedModel model(ModelFiles::open(options), options, device());
    const std::vector<OpPlace>& ops = model.ops();
    EXPECT_EQ(to_string(ops.front()), "embedding");
    EXPECT_EQ(to_string(ops[1 + 2 * kOpsOfLayer]), "layer 2, attention norm");
    EXPECT_EQ(to_string(ops[ops.size() - 3]), kFinalNorm);
    EXPECT_EQ(to_string(ops[ops.size() - 2]), "LM head input");
    EXPECT_EQ(to_string(ops.back()), "logits");
    for (size_t i = 0; i < ops.size(); ++i)
        EXPECT_EQ(std::count(ops.begin(), ops.end(), ops[i]), 1) << to_string(ops[i]);
}

TEST(Compare, NamesTheOpThatIsNan) {
    const Plant nan = plant_in(2, 1, [](std::vector<float>& values) {
        values[5] = std::numeric_limits<float>::quiet_NaN();
    });
    for (const bool reference : {false, true}) {
        const Judged judged =
            reference ? compared({nan, {}}) : compared({{}, nan}, {.weights = DType::Q8_0});
        EXPECT_FALSE(judged.verdict.passed());
        EXPECT_FALSE(judged.check("finite").passed);
        EXPECT_EQ(judged.check("finite").finding,
                  std::string("NaN or infinity first in layer 2, qkv on ") +
                      (reference ? "cpu" : "cpu #2"));
    }
}

TEST(Compare, FindsSwappedLogits) {
    const Plant swapped = [](Backend& be, int, std::string_view op, Tensor out) {
        if (op == "matmul" && out.cols == 4096)
            rewrite(be, out, [](std::vector<float>& logits) {
                for (size_t row = 0; row < logits.size(); row += 4096)
                    std::swap(logits[row + 3],
                              *std::max_element(logits.begin() + long(row),
                                                logits.begin() + long(row) + 4096));
            });
    };
    const Judged judged = compared({{}, swapped});
    EXPECT_EQ(judged.failures(), "ops, KL, mean, KL, most, likeliest token, text");
    EXPECT_NE(judged.check("ops").finding.find("in logits, the only op beyond"), std::string::npos);
    const ComparedText& text = judged.device().texts[0];
    EXPECT_EQ(text.fork->at, 0);
    EXPECT_EQ(text.fork->device, 3);
    EXPECT_GT(text.fork->margin, 1);
    EXPECT_EQ(text.fork->margin, text.positions[judged.comparison.prompts[0].size() - 1].margin);
}

// Decoding goes wrong at one place, as with a race, while a pass over the whole text is right.
TEST(Compare, FindsATextThatForks) {
    constexpr int kToken = 7;
    const Plant astray = [passes = 0](Backend& be, int, std::string_view op, Tensor out) mutable {
        if (op != "matmul" || out.cols != 4096 || out.rows != 1 || passes++ != kToken) return;
        rewrite(be, out, [](std::vector<float>& logits) { logits[11] = 100; });
    };
    const Judged judged = compared({{}, astray});
    const ComparedText& text = judged.device().texts[0];
    ASSERT_TRUE(text.fork && text.prefill_fork);
    EXPECT_EQ(text.fork->at, kToken);
    EXPECT_EQ(text.fork->device, 11);
    EXPECT_EQ(*text.prefill_fork, kToken);
    EXPECT_EQ(judged.failures(), "text, prefill");
    EXPECT_NE(judged.check("text").finding.find("0 of 1 greedy texts equal; forks at prompt 1, "
                                                "token 8"),
              std::string::npos)
        << judged.check("text").finding;
}

// An error in passes over several rows only: drafting changes the text.
TEST(Compare, FindsDraftingThatIsNotLossless) {
    const Plant wide = [](Backend& be, int, std::string_view op, Tensor out) {
        if (op == "matmul" && out.cols == 4096 && out.rows == 60)
            rewrite(be, out, [](std::vector<float>& logits) {
                for (size_t row = 0; row < logits.size(); row += 4096) logits[row + 11] = 100;
            });
    };
    Setting setting;
    setting.drafts = true;
    const Judged judged = compared({{}, wide}, setting);
    EXPECT_FALSE(judged.check("drafting").passed);
    EXPECT_TRUE(judged.check("text").passed);
    EXPECT_EQ(judged.check("drafting").finding, "changes the text at prompt 1, token 2");
}

class CompareInstructionSet : public testing::TestWithParam<const char*> {};

TEST_P(CompareInstructionSet, IsTheSameCpu) {
    const std::string device = std::string("cpu:") + GetParam();
    std::unique_ptr<Backend> backend;
    try {
        backend = open_device(device, {2});
    } catch (const Error& error) {
        GTEST_SKIP() << "SKIPPED: " << error.what();
    }
    LoadOptions options = bundled_options(DType::F16);
    options.draft.method = "none";
    std::vector<std::unique_ptr<ComparedModel>> models;
    models.push_back(std::make_unique<ComparedModel>(ModelFiles::open(options), options,
                                                     open_device("cpu", {2})));
    models.push_back(
        std::make_unique<ComparedModel>(ModelFiles::open(options), options, std::move(backend)));
    CompareTask task;
    task.prompts = {{1, 300, 301, 302}};
    task.max_tokens = 8;
    const Comparison comparison = compare(models, Tokenizer::load(options.model), task);
    EXPECT_EQ(comparison.devices[1].name, device);
    EXPECT_TRUE(comparison.devices[1].identical());
    EXPECT_TRUE(judge(comparison).passed());
}

INSTANTIATE_TEST_SUITE_P(Cpu, CompareInstructionSet,
                         testing::Values("portable", "avx2", "avxvnni", "avx512", "amx"),
                         [](const auto& info) { return std::string(info.param); });

// Every other device of this machine against the CPU; if there is none, the CPU's portable code.
TEST(Compare, GoldenTextsAreTheSameOnEveryDevice) {
    std::vector<std::string> names;
    for (const Capabilities& device : list_devices())
        if (device.name != "cpu" && device.problem.empty()) names.push_back(device.name);
    if (names.empty()) names.push_back("cpu:portable");
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    const Json greedy = read_data("greedy.json");
    const size_t prompts = std::min(greedy.array()->size(), size_t(count ? std::atoi(count) : 3));
    LoadOptions options = bundled_options(DType::F32);
    options.context = 512;
    options.draft = draft_options("none");
    std::vector<std::unique_ptr<ComparedModel>> models;
    for (const std::string& name : with_cpu(names))
        models.push_back(std::make_unique<ComparedModel>(ModelFiles::open(options), options,
                                                         open_device(name, {2})));
    CompareTask task;
    // The prompts are spread over arithmetic, code and text.
    for (size_t i = 0; i < prompts; ++i)
        task.prompts.push_back(ints(*golden_entry(greedy, i, prompts).find("prompt_ids")));
    task.max_tokens = 128;
    const Tokenizer tokenizer = Tokenizer::load(options.model);
    task.eos_ids = {tokenizer.eos()};
    const Comparison comparison = compare(models, tokenizer, task);
    for (const Check& check : judge(comparison).checks)
        EXPECT_TRUE(check.passed) << check.device << ", " << check.name << ": " << check.finding;
    for (const ComparedDevice& device : comparison.devices)
        for (size_t i = 0; i < prompts; ++i) {
            const Json& entry = golden_entry(greedy, i, prompts);
            std::vector<int> want = ints(*entry.find("ids")), got = device.texts[i].ids;
            const size_t safe = size_t(entry.find("safe")->number());
            want.resize(std::min(want.size(), safe));
            got.resize(std::min(got.size(), safe));
            EXPECT_EQ(got, want) << device.name << ", prompt " << i;
        }
}

// Devices without a common op, and texts without a position: nothing was compared, so nothing
// passes.
TEST(Verdict, NothingToCompareIsAFailure) {
    Judged judged;
    judged.comparison.devices.resize(2);
    judged.comparison.devices[0].name = "cpu";
    judged.comparison.devices[1].name = "other";
    judged.verdict = judge(judged.comparison);
    EXPECT_EQ(judged.failures(), "ops, final state, KL, mean, KL, most, likeliest token");
    ComparedOp op{{-1, kFinalNorm}, {}, {}};
    judged.comparison.devices[1].ops = {op};
    judged.verdict = judge(judged.comparison);
    EXPECT_FALSE(judged.check("final state").passed);
    const std::vector<float> values = {1, 2};
    judged.comparison.devices[1].ops[0].carried.add_row(values, values);
    judged.verdict = judge(judged.comparison);
    EXPECT_TRUE(judged.check("final state").passed);
    judged.comparison.devices[1].ops[0].place.name = "last norm";
    judged.verdict = judge(judged.comparison);
    EXPECT_FALSE(judged.check("final state").passed);
}

// A reference's values can be written to a device that wants another type.
TEST(OpValues, ChangeTheirType) {
    const auto be = open_device("cpu", {1});
    const Buffer memory = be->allocate(1024);
    const Tensor floats = dense(memory.get(), DType::F32, 2, 32),
                 groups = dense(memory.get(), DType::I8G32, 2, 32);
    OpValues values;
    values.dtype = DType::F32;
    values.rows = 2;
    values.cols = 32;
    std::vector<float> numbers(64), got;
    for (int i = 0; i < 64; ++i) numbers[size_t(i)] = float(i - 40);
    values.bytes.assign(reinterpret_cast<const std::byte*>(numbers.data()),
                        reinterpret_cast<const std::byte*>(numbers.data() + 64));
    values.write(*be, groups);
    OpValues packed;
    packed.read(*be, groups);
    EXPECT_EQ(packed.dtype, DType::I8G32);
    packed.floats(got);
    for (size_t i = 0; i < 64; ++i) EXPECT_NEAR(got[i], numbers[i], 40.0 / 254 + 1e-5);
    packed.write(*be, floats);
    OpValues again;
    again.read(*be, floats);
    std::vector<float> same;
    again.floats(same);
    EXPECT_EQ(same, got);
}

TEST(Difference, SumsRows) {
    Difference difference;
    const std::vector<float> a = {3, 4}, b = {3, 4.5f}, zero = {0, 0};
    difference.add_row(a, a);
    EXPECT_TRUE(difference.identical());
    difference.add_row(a, b);
    EXPECT_EQ(difference.values, 4);
    EXPECT_EQ(difference.equal, 3);
    EXPECT_NEAR(difference.worst_row, 0.1, 1e-12);
    EXPECT_NEAR(difference.relative(), 0.1 / std::sqrt(2), 1e-12);
    difference.add_row(zero, zero);
    EXPECT_NEAR(difference.worst_row, 0.1, 1e-12);
    difference.add_row(zero, a);
    EXPECT_TRUE(std::isinf(difference.worst_row));
    const std::vector<float> nan = {NAN, 0};
    difference.add_row(a, nan);
    difference.add_row(a, a);
    EXPECT_TRUE(std::isnan(difference.worst_row));
    EXPECT_TRUE(std::isnan(difference.relative()));
    EXPECT_EQ(difference.not_finite, 1);
    EXPECT_EQ(difference.reference_not_finite, 0);
}

TEST(Difference, DivergenceIsThatOfTheDistributions) {
    const std::vector<float> p = {0, std::log(3.0f)}, q = {1, 1};
    EXPECT_NEAR(divergence(p, q), 0.25 * std::log(0.5) + 0.75 * std::log(1.5), 1e-7);
    EXPECT_EQ(divergence(p, p), 0);
    const std::vector<float> impossible = {0, -INFINITY}, nan = {0, NAN};
    EXPECT_NEAR(divergence(impossible, q), std::log(2), 1e-12);
    EXPECT_TRUE(std::isinf(divergence(q, impossible)));
    EXPECT_TRUE(std::isnan(divergence(p, nan)));
    EXPECT_EQ(likeliest(std::vector<float>{NAN, 2, 5, 5}), 2);
    EXPECT_EQ(likeliest(std::vector<float>{NAN, NAN}), -1);
}

}  // namespace
}  // namespace aerie::test
