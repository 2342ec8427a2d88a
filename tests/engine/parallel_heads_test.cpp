// Medusa and Hydra heads: their logits against doubles in every published layout, and the texts of
// the bundled heads against plain decoding.
#include "engine/parallel_heads.h"

#include <gtest/gtest.h>

#include <cmath>

#include "draft/heads/res_block.h"
#include "io/damage.h"
#include "io/write_files.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;

int prompt_count() {
    const char* count = std::getenv("AERIE_TEST_PROMPTS");
    return std::min(count ? std::atoi(count) : 2, 40);
}

// Logits of heads of one form on the bundled target, on the device and in doubles. A text of some
// rows comes first, then a path of children of its last row.
class HeadLogits {
  public:
    HeadLogits(const HeadForm& form, const HeadParts& parts, const LoadOptions& options)
        : form_(form), parts_(parts), options_(options), model_(options_) {
        allocate();
        for (const Stored& tensor : Stored::all_of(models_dir() / "aerie-tiny")) {
            if (tensor.name == "lm_head.weight") lm_head_ = tensor.as(DType::F32);
            if (tensor.name == "model.embed_tokens.weight") embedding_ = tensor.as(DType::F32);
        }
        read_text();
    }

    // The largest difference of a logit, over the largest logit; the worst of all heads.
    double apart() {
        double worst = 0;
        for (int level = 0; level < form_.heads; ++level) {
            if (level > 0) descend(level);
            levels_->logits(logits_, states_.row_range(0, 1), level, 1);
            std::vector<float> got(size_t(target_.vocab));
            model_.backend().read(logits_, got.data());
            const double one = apart(got, logits_of(form_, parts_, level, inputs_, &lm_head_));
            if (!(one <= worst)) worst = one;  // a NaN stays
        }
        return worst;
    }

  private:
    static constexpr int kRows = 5;

    DraftSource source() {
        DraftSource source{model_.backend(), model_.target(), plan_, nullptr};
        source.weights = load_draft_weights(source);
        return source;
    }
    std::unique_ptr<LevelModel> levels() const {
        const DraftHead& head = *plan_.head->kind;
        const Growth growth = within(parallel_growth(options_.draft), head.most_levels(plan_));
        EXPECT_EQ(growth.shape.levels, form_.heads);
        return head.levels(source_, reach_of(growth));
    }
    void allocate() {
        TensorPlan plan;
        plan.add(features_, DType::F32, kRows, target_.hidden);
        plan.add(states_, DType::F32, kRows, levels_->state_columns());
        plan.add(child_, DType::F32, 1, levels_->state_columns());
        plan.add(logits_, DType::F32, 1, target_.vocab);
        plan.add(rows_.block, DType::I32, kRows, kRowInts);
        plan.add(child_rows_.block, DType::I32, 1, kRowInts);
        memory_ = plan.allocate(model_.backend());
        pages_.hold(kRows + 8);
    }

    // Afterwards states_[0] is the state of the newest row.
    void read_text() {
        Backend& be = model_.backend();
        const Stored features = random_part("features", {kRows, target_.hidden}, 2);
        be.write(features_, features.data.data());
        std::vector<Row> text;
        for (int p = 0; p < kRows; ++p)
            text.push_back(causal_row(100 + 7 * p, p, pages_.sequence()));
        be.write(rows_.block, text.data());
        levels_->read(states_, features_, rows_);
        be.run(Copy{states_.row_range(0, 1), states_.row_range(kRows - 1, 1)});
        row_ = text.back();
        inputs_.assign(floats(features).end() - target_.hidden, floats(features).end());
        if (form_.prefix) normalise(floats(parts_.at("prefix_embeding_layer.norm.weight")));
        embed(row_.token);
    }
    void descend(int level) {
        Backend& be = model_.backend();
        row_ = child_row(row_, level == 1, 900 + level, level - 1);
        be.write(child_rows_.block, &row_);
        levels_->forward(child_, {states_.row_range(0, 1)}, child_rows_, level);
        be.run(Copy{states_.row_range(0, 1), child_});
        embed(row_.token);
    }

    void normalise(std::span<const float> weight) {
        double sum = 0;
        for (double value : inputs_) sum += value * value;
        const double size = std::sqrt(sum / double(inputs_.size()) + target_.rms_epsilon);
        for (size_t k = 0; k < inputs_.size(); ++k) inputs_[k] *= weight[k] / size;
    }
    void embed(int token) {
        const auto hidden = size_t(target_.hidden);
        const auto row = floats(embedding_).subspan(size_t(token) * hidden, hidden);
        if (form_.hydra) inputs_.insert(inputs_.end(), row.begin(), row.end());
    }
    static double apart(const std::vector<float>& got, const Doubles& want) {
        double difference = 0, largest = 0;
        for (size_t i = 0; i < want.size(); ++i) {
            const double one = std::abs(double(got[i]) - want[i]);
            if (!(one <= difference)) difference = one;
            largest = std::max(largest, std::abs(want[i]));
        }
        return difference / largest;
    }

    const HeadForm& form_;
    const HeadParts& parts_;
    const LoadOptions options_;
    Bundled model_;
    const ModelConfig target_ = model_.model().files().config;
    const DraftPlan plan_ =
        model_.model().files().draft_plan(options_.draft, options_, model_.limits());
    const DraftSource source_ = source();
    const std::unique_ptr<LevelModel> levels_ = levels();
    KvPages pages_ = levels_->kv().begin();
    Stored lm_head_, embedding_;  // the target's
    Buffer memory_;
    Tensor features_, states_, child_, logits_;
    Rows rows_, child_rows_;
    Row row_;         // the newest node
    Doubles inputs_;  // for the next head: newest feature, and for Hydra the embeddings after it
};

class ParallelHeads : public testing::Test {
  protected:
    fs::path write(const HeadForm& form, const HeadParts& parts) const {
        fs::remove_all(folder_.path() / "head");
        folder_.write("head/config.json", head_json(form));
        folder_.write("head/" + form.file(), torch_of(list_of(parts)));
        return folder_.path() / "head";
    }
    static HeadParts parts_of(const HeadForm& form) {
        const ModelConfig target = ModelFiles::open(bundled_options()).config;
        return random_parts(form, target.hidden, target.vocab, target.kv_columns(),
                            target.intermediate);
    }
    double apart(const HeadForm& form) const {
        const HeadParts parts = parts_of(form);
        LoadOptions options =
            options_of(write(form, parts), DType::F32, form.hydra ? "hydra" : "medusa");
        options.draft.tree = TreeShape{8, 6, 2};
        options.context = 128;
        return HeadLogits(form, parts, options).apart();
    }

    TestFolder folder_;
};

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

// With a layer that adds something, Hydra++ still changes no text.
TEST_F(ParallelHeads, OfHydraPlusPlusChangeNoText) {
    const HeadForm form{.hydra = true, .prefix = true, .heads = 3};
    HeadParts parts = parts_of(form);
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

// Every tree of the bundled heads, in the files that they are published in.
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

// Heads with their own LM heads, each a copy of the target's, draft the same trees.
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

}  // namespace
}  // namespace aerie::test
