// Medusa and Hydra heads: their logits against doubles in every published layout, the bundled ones'
// texts against plain decoding, and files that nobody should trust.
#include "engine/parallel_heads.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "draft/res_block.h"
#include "io/damage.h"
#include "io/write_files.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

int prompt_count() {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    return std::min(count ? std::atoi(count) : 2, 40);
}

LoadOptions options_of(const fs::path& head, DType type, const std::string& method) {
    LoadOptions options = bundled_options(type);
    options.head = head;
    options.draft.method = method;
    return options;
}

class ParallelHeads : public testing::Test {
  protected:
    fs::path write(const HeadForm& form, const HeadParts& parts) const {
        fs::remove_all(folder_.path() / "head");
        folder_.write("head/config.json", head_json(form));
        folder_.write("head/" + form.file(), torch_of(list_of(parts)));
        return folder_.path() / "head";
    }
    // The greatest difference of a logit, over the largest one.
    double apart(const HeadForm& form);

    TestFolder folder_;
};

// Text rows, then children of the last one along a path; every head in turn.
double ParallelHeads::apart(const HeadForm& form) {
    const std::string method = form.hydra ? "hydra" : "medusa";
    const ModelConfig target = ModelFiles::open(bundled_options()).config;
    const int hidden = target.hidden, vocab = target.vocab;
    const HeadParts parts =
        random_parts(form, hidden, vocab, target.kv_columns(), target.intermediate);
    LoadOptions options = options_of(write(form, parts), DType::F32, method);
    options.draft.tree = TreeShape{8, 6, 2};
    options.context = 128;
    Bundled model(options);
    Backend& be = model.backend();
    const DraftPlan plan = model.model().files().draft_plan(options.draft, options, model.limits());
    DraftSource source{be, model.target(), plan, nullptr};
    source.weights = load_draft_weights(source);
    const DraftHead& head = head_of(plan);
    const Growth growth = within(parallel_growth(options.draft), head.most_levels(plan));
    EXPECT_EQ(growth.shape.levels, form.heads);
    const auto levels = head.levels(source, reach_of(growth));
    const int columns = levels->state_columns();

    const std::vector<Stored> target_tensors = Stored::all_of(models_dir() / "aerie-tiny");
    const auto target_tensor = [&](const std::string& name) {
        for (const Stored& tensor : target_tensors)
            if (tensor.name == name) return tensor.as(DType::F32);
        return Stored{};
    };
    const Stored lm_head = target_tensor("lm_head.weight"),
                 embedding = target_tensor("model.embed_tokens.weight");

    constexpr int kRows = 5;
    const Stored features = random_part("features", {kRows, hidden}, 2);
    const size_t floats_bytes = sizeof(float);
    const Buffer memory = be.allocate(size_t(kRows) * size_t(hidden + 2 * columns) * floats_bytes +
                                      size_t(vocab) * floats_bytes + 2 * kRows * sizeof(Row));
    size_t at = 0;
    const auto room = [&](DType type, int rows, int cols) {
        Tensor tensor = dense(memory.get(), type, rows, cols);
        tensor.offset_bytes = at;
        at += dense_bytes(type, rows, cols);
        return tensor;
    };
    const Tensor device_features = room(DType::F32, kRows, hidden);
    const Tensor states = room(DType::F32, kRows, columns), child = room(DType::F32, 1, columns);
    const Tensor logits = room(DType::F32, 1, vocab);
    const Rows rows{room(DType::I32, kRows, kRowInts)}, child_rows{room(DType::I32, 1, kRowInts)};
    be.write(device_features, features.data.data());
    KvPages pages = levels->kv().begin();
    pages.hold(kRows + 8);
    std::vector<Row> text;
    for (int p = 0; p < kRows; ++p) text.push_back(causal_row(100 + 7 * p, p, pages.sequence()));
    be.write(rows.block, text.data());
    levels->read(states, device_features, rows);

    // The newest feature, and what it is in Hydra++.
    Doubles x(floats(features).end() - hidden, floats(features).end());
    if (form.prefix) {
        double sum = 0;
        for (double value : x) sum += value * value;
        const std::span<const float> norm = floats(parts.at("prefix_embeding_layer.norm.weight"));
        for (int k = 0; k < hidden; ++k)
            x[size_t(k)] *= norm[size_t(k)] / std::sqrt(sum / hidden + target.rms_epsilon);
    }
    const auto embed = [&](int token) {
        const auto row = floats(embedding).subspan(size_t(token) * size_t(hidden), size_t(hidden));
        if (form.hydra) x.insert(x.end(), row.begin(), row.end());
    };
    embed(text.back().token);
    double worst = 0;
    Tensor state = states.row_range(kRows - 1, 1);
    Row row = text.back();
    for (int level = 0; level < form.heads; ++level) {
        if (level > 0) {
            row = child_row(row, level == 1, 900 + level, level - 1);
            be.write(child_rows.block, &row);
            levels->forward(child, state, child_rows, level);
            be.run(Copy{states.row_range(0, 1), child});
            state = states.row_range(0, 1);
            embed(row.token);
        }
        levels->logits(logits, state, level);
        std::vector<float> got(static_cast<size_t>(vocab));
        be.read(logits, got.data());
        const Doubles want = logits_of(form, parts, level, x, &lm_head);
        double difference = 0, largest = 0;
        for (size_t i = 0; i < want.size(); ++i) {
            const double one = std::abs(double(got[i]) - want[i]);
            if (!(one <= difference)) difference = one;  // NaN stays
            largest = std::max(largest, std::abs(want[i]));
        }
        if (!(difference / largest <= worst)) worst = difference / largest;
    }
    return worst;
}

TEST_F(ParallelHeads, SayWhatDoublesSay) {
    const std::vector<std::pair<const char*, HeadForm>> forms = {
        {"Medusa", {.own_lm_head = true, .heads = 5}},
        {"Medusa, of a whole model", {.own_lm_head = true, .begin = "medusa_head."}},
        {"Medusa, 2 blocks", {.own_lm_head = true, .blocks = 2}},
        {"Medusa, the target's LM head", {}},
        {"Hydra", {.hydra = true, .own_lm_head = true, .lm_head_bias = true}},
        {"Hydra, 2 blocks", {.hydra = true, .own_lm_head = true, .blocks = 2}},
        {"Hydra, the target's LM head", {.hydra = true, .heads = 4}},
        {"Hydra++",
         {.hydra = true,
          .prefix = true,
          .own_lm_head = true,
          .lm_head_bias = true,
          .heads = 4,
          .blocks = 4}}};
    for (const auto& [what, form] : forms) {
        const double worst = apart(form);
        std::printf("%-30s %.1e\n", what, worst);
        EXPECT_LE(worst, 4e-6) << what;
    }
}

// With a layer that does something, Hydra++ still changes no text.
TEST_F(ParallelHeads, OfHydraPlusPlusChangeNoText) {
    const HeadForm form{.hydra = true, .prefix = true, .heads = 3};
    const ModelConfig target = ModelFiles::open(bundled_options()).config;
    HeadParts parts =
        random_parts(form, target.hidden, target.vocab, target.kv_columns(), target.intermediate);
    for (const char* part : {"self_attn.o_proj.weight", "mlp.down_proj.weight"}) {
        const std::string name = std::string("prefix_embeding_layer.layers.0.") + part;
        parts[name] = random_part(name, parts[name].shape, 0.05);
    }
    Bundled model(options_of(write(form, parts), DType::F16, "hydra"));
    const auto plain = model.drafting(draft_options("none")),
               drafted = model.drafting(draft_options("hydra"));
    for (float temperature : {0.0f, 0.8f}) {
        Request request = model.request(model.encode(sixty_prompts()[3]), most_tokens(48),
                                        sampling_at(temperature, 5));
        EXPECT_EQ(model.run(*drafted.session, request).ids, model.run(*plain.session, request).ids);
    }
}

// Every tree of the bundled heads, and the files that they come from.
class BundledHeads : public testing::TestWithParam<std::tuple<DType, float, std::string>> {};

TEST_P(BundledHeads, ChangeNoText) {
    const auto& [type, temperature, method] = GetParam();
    skip_unless_stored(type);
    if (IsSkipped()) return;
    Bundled model(options_of(models_dir() / ("aerie-tiny-" + method), type, method));
    DraftOptions chosen = draft_options(method), published = chosen, fixed = chosen;
    chosen.tree.reset();
    published.tree.reset();
    published.is_published = true;
    fixed.tree.reset();
    fixed.static_tree = TreePaths{{0}, {1}, {0, 0}, {0, 1}, {0, 0, 0}};
    const std::vector<std::pair<std::string, DraftOptions>> drafters = {
        {"chosen", chosen},
        {"60,6,10", draft_options(method)},
        {"published", published},
        {"of a file", fixed},
        {"chain", draft_options("chain")}};
    const auto plain = model.drafting(draft_options("none"));
    for (const auto& [what, draft] : drafters) {
        const auto drafted = model.drafting(draft);
        if (CostAware* costs =
                drafted.drafter->cost_aware())  // drafts pay, whatever the clock says
            costs->set_costs({{{1, 3e-4}, {64, 6e-4}}, {{1, 1e-5}, {10, 2e-5}}, true});
        double tokens = 0, cycles = 0;
        for (int i = 0; i < prompt_count(); ++i) {
            Request request = model.request(model.encode(sixty_prompts()[size_t(i)]),
                                            most_tokens(64), sampling_at(temperature, 1000 + i));
            request.eos_ids.clear();
            const GenerationResult result = model.run(*drafted.session, request);
            EXPECT_EQ(result.ids, model.run(*plain.session, request).ids) << what;
            tokens += result.stats.cycle_tokens;
            cycles += result.stats.cycles;
        }
        std::printf("%s %s T %.1f, %s: tau %.2f\n", method.c_str(), name(type), double(temperature),
                    what.c_str(), tokens / cycles);
        EXPECT_GT(tokens / cycles, what == "published" ? 1.6 : 1.3);
    }
}

INSTANTIATE_TEST_SUITE_P(All, BundledHeads,
                         testing::Combine(testing::Values(DType::F16, DType::Q8_0, DType::Q4_0),
                                          testing::Values(0.0f, 0.8f),
                                          testing::Values("medusa", "hydra")),
                         [](const auto& test) {
                             return std::get<2>(test.param) + "_" + name(std::get<0>(test.param)) +
                                    (std::get<1>(test.param) > 0 ? "_sampled" : "_greedy");
                         });

// The layout with LM heads of their own, each a copy of the target's, drafts the same trees.
TEST_F(ParallelHeads, WithLmHeadsOfTheirOwnDraftTheSame) {
    Stored lm_head;
    for (const Stored& tensor : Stored::all_of(models_dir() / "aerie-tiny"))
        if (tensor.name == "lm_head.weight") lm_head = tensor;
    for (const bool hydra : {false, true}) {
        const std::string method = hydra ? "hydra" : "medusa";
        const fs::path bundled = models_dir() / ("aerie-tiny-" + method);
        const HeadForm form{.hydra = hydra, .heads = hydra ? 3 : 4};
        HeadParts parts;
        for (const Stored& tensor : Stored::all_of(bundled)) parts[tensor.name] = tensor;
        for (int i = 0; i < form.heads; ++i) {
            Stored own = lm_head;
            own.name = form.lm_head_name(i) + "weight";
            parts[own.name] = own;
        }
        Bundled shared(options_of(bundled, DType::F32, method)),
            own(options_of(write(form, parts), DType::F32, method));
        const auto of_shared = shared.drafting(draft_options(method)),
                   of_own = own.drafting(draft_options(method));
        const Request request = shared.request(shared.encode(sixty_prompts()[1]), 40);
        const GenerationResult a = shared.run(*of_shared.session, request),
                               b = own.run(*of_own.session, request);
        EXPECT_EQ(a.ids, b.ids);
        EXPECT_EQ(a.stats.cycles, b.stats.cycles) << method;
        EXPECT_GT(own.model().draft_weights().at(DType::F32),
                  size_t(form.heads) * size_t(4096 * 256 * 4));
    }
}

class HostileParallelHeads : public ParallelHeads {
  protected:
    using Spoil = std::function<void(HeadParts&)>;

    void refused(const HeadForm& form, const Spoil& spoil, const std::string& why) const {
        HeadParts parts = random_parts(form, kHidden, kVocab, 0, 0);
        spoil(parts);
        refused_file(form, torch_of(list_of(parts)), why);
    }
    void refused_file(const HeadForm& form, const std::string& file, const std::string& why) const {
        fs::remove_all(folder_.path() / "the-head");
        folder_.write("the-head/config.json", head_json(form));
        folder_.write("the-head/" + form.file(), file);
        const std::string said = said_of(form);
        EXPECT_NE(said.find("the-head"), std::string::npos) << said;
        EXPECT_NE(said.find(why), std::string::npos) << said;
        EXPECT_LT(said.size(), 500u) << said;
    }
    std::string said_of(const HeadForm& form) const {
        const std::string method = form.hydra ? "hydra" : "medusa";
        const LoadOptions options = options_of(folder_.path() / "the-head", DType::F16, method);
        return error_of([&] {
            Model model(ModelFiles::open(options), options, open_device("cpu", {1}));
            model.drafter(options.draft, model.limits());
        });
    }

    static constexpr int kHidden = 256, kVocab = 4096;
};

TEST_F(HostileParallelHeads, AreRefusedInOneLine) {
    const HeadForm medusa{.own_lm_head = true, .heads = 2}, hydra{.hydra = true, .heads = 2};
    const auto set = [](const std::string& name, std::vector<int64_t> shape, double size = 0.1) {
        return Spoil([=](HeadParts& parts) { parts[name] = random_part(name, shape, size); });
    };
    const auto drop = [](const std::string& name) {
        return Spoil([=](HeadParts& parts) { ASSERT_EQ(parts.erase(name), 1u); });
    };
    refused(medusa, drop("0.0.linear.bias"), "0.0.linear.bias");
    refused(medusa, drop("1.1.weight"), "some of its heads have an LM head of their own");
    refused(medusa, set("1.0.linear.weight", {256, 255}), "[256, 255]");
    refused(medusa, set("0.0.linear.weight", {255, 256}), "hidden size 255");
    refused(medusa, set("0.0.linear.weight", {256}), "no matrix");
    refused(medusa, set("0.1.weight", {4095, 256}), "vocabulary size 4095");
    refused(medusa, set("1.1.weight", {4095, 256}), "[4095, 256]");
    refused(medusa, set("3.0.linear.weight", {256, 256}), "no part of a Medusa head");
    refused(medusa, set("0.0.linear.scale", {256}), "no part of a Medusa head");
    refused(medusa, set("lm_head.weight", {4096, 256}), "no part of a Medusa head");
    refused(hydra, drop("hydra_mlp.1.0.res_connection.weight"), "res_connection.weight");
    refused(hydra, drop("hydra_mlp.0.0.linear.bias"), "linear.bias");
    refused(hydra, set("hydra_mlp.1.0.linear.weight", {256, 512}), "[256, 512]");
    refused(hydra, set("hydra_lm_head.5.weight", {4096, 256}), "no part of a Hydra head");
    refused(hydra, set("prefix_embeding_layer.norm.weight", {256}), "prefix_embeding_layer");
    refused(
        medusa,
        [](HeadParts& parts) {
            const float nan = NAN;
            std::memcpy(&parts.at("1.0.linear.weight").data[400], &nan, sizeof(nan));
        },
        "1.0.linear.weight");
}

TEST_F(HostileParallelHeads, PicklesAreReadAndNeverRun) {
    const HeadForm form{.own_lm_head = true, .heads = 2};
    PickleWriter calls;
    calls.raw("}").string("0.0.linear.weight").global("os", "system").raw("(");
    calls.string("touch pwned").raw("tRs");
    for (const HeadForm& one : {form, HeadForm{.hydra = true}}) {
        refused_file(one, torch_file(calls.text(), {}), "'os.system'");
        refused_file(one, "", "not a zip");
        refused_file(one, torch_of({}), "hidden_size");
    }
    EXPECT_FALSE(fs::exists("pwned"));
    const std::string good = torch_of(list_of(random_parts(form, kHidden, kVocab, 0, 0)));
    for (const double part : {0.1, 0.5, 0.9, 0.999})
        refused_file(form, good.substr(0, size_t(double(good.size()) * part)), "");
}

// Any damage of a small file: an error of one line, or heads that draft.
TEST_F(HostileParallelHeads, SurviveDamage) {
    const HeadForm form{.heads = 2};
    HeadParts parts;
    for (auto& [name, part] : random_parts(form, 2, 4, 0, 0)) parts[name] = part;
    const fs::path folder = folder_.path() / "the-head";
    folder_.write("the-head/config.json", head_json(form));
    expect_survives_damage(torch_of(list_of(parts)), [&](const std::string& file) {
        folder_.write("the-head/" + form.file(), file);
        const ModelSource source = open_head(folder);
        if (head_kind(source) == HeadKind::medusa) head_config(source);
    });
}

}  // namespace
}  // namespace aerie::test
