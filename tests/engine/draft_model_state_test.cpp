// State of a draft model: the memory that was planned, the tokens of each text that it has read,
// its costs.
#include <gtest/gtest.h>

#include <numeric>

#include "engine/checks.h"
#include "engine/costs.h"
#include "engine/draft_model.h"
#include "engine/together.h"
#include "engine/watched_backend.h"
#include "model/tensors.h"

namespace aerie::test {
namespace {

// The drafter takes exactly the planned memory; the plan counts it apart from the weights.
TEST(DraftModel, TakesTheMemoryThatIsPlanned) {
    const ModelConfig same = small_shape(4096), wide = small_shape(4200),
                      narrow = small_shape(4000), mixtral = small_shape(4096, "mixtral-8x7b");
    for (const ModelConfig* shape : {&same, &wide, &narrow, &mixtral})
        for (const DraftOptions& draft : kTrees) {
            LoadOptions options = options_of(DType::F16, DType::Q8_0);
            options.draft = draft;
            options.context = 300;
            auto device = std::make_unique<WatchedBackend>("cpu");
            WatchedBackend& watched = *device;
            Bundled model(files_with(options, shape), options, std::move(device));
            const size_t before = watched.allocated.size();
            const auto drafter = model.model().drafter(draft, model.limits());
            const size_t taken = std::accumulate(watched.allocated.begin() + ptrdiff_t(before),
                                                 watched.allocated.end(), size_t(0));
            const ModelFiles& files = model.model().files();
            const DraftBytes planned =
                draft_method("model").bytes(files.draft_plan(draft, options, model.limits()));
            EXPECT_EQ(taken, planned.scratch + planned.weights - sum(planned.types));
            const MemoryPlan plan = files.plan(options, model.backend());
            EXPECT_EQ(plan.head_weights, planned.weights);
            EXPECT_EQ(plan.head_types.count(DType::Q8_0), 1u);
            EXPECT_GT(plan.scratch, planned.scratch);
        }
}

// A text that was not read while drafting was too expensive is read when drafting pays again.
TEST(DraftModel, ReadsWhatItMissed) {
    Bundled model = model_with(options_of(DType::F16, DType::F16), nullptr);
    const auto drafting = model.drafting(tree_of_shape({}));
    CostAware& costs = *drafting.drafter->cost_aware();
    const MeasuredCosts dear = {{{1, 0.01}, {64, 0.02}}, {{1, 0.5}, {10, 0.5}}, true};
    const MeasuredCosts cheap = {{{1, 0.01}, {64, 0.02}}, {{1, 0.0001}, {10, 0.0001}}, true};
    Session& session = *drafting.session;
    const auto cycles = [&](int count) {
        int nodes = 0, accepted = 0;
        for (int i = 0; i < count; ++i) {
            const TokenTree tree = session.propose();
            const Path path = accept(tree, session.verify(tree));
            session.commit(tree, path);
            nodes += tree.size() - 1;
            accepted += int(path.nodes.size()) - 1;
        }
        return std::pair(nodes, accepted);
    };
    costs.set_costs(dear);
    session.begin({});
    session.prefill(prompt_of(model, 5));
    EXPECT_EQ(cycles(100).first, 0);
    costs.set_costs(cheap);
    const auto [nodes, accepted] = cycles(20);
    EXPECT_GT(nodes, 20);
    EXPECT_GT(accepted, 20);
    const auto plain = model.drafting(draft_options("none"));
    const std::vector<int> want = decode(*plain.session, prompt_of(model, 5), 120);
    const auto tokens = session.sequence().tokens();
    EXPECT_TRUE(std::equal(want.begin(), want.end(),
                           tokens.begin() + ptrdiff_t(prompt_of(model, 5).size())));
}

TEST(DraftModel, ItsCostsAreMeasured) {
    const ModelConfig shape = small_shape(4000);
    Bundled model = model_with(options_of(DType::Q8_0, DType::Q8_0), &shape);
    const auto drafting = model.drafting(tree_of_shape({}));
    const MeasuredCosts costs =
        measure_costs(*drafting.session, *drafting.drafter->cost_aware(), 0.9);
    EXPECT_GT(costs.level.size(), 2u);
    EXPECT_LT(costs.level.front().seconds, costs.verify.front().seconds);
}

// Two texts in one batch, and the tokens that each must become.
class TextsApart : public testing::TestWithParam<int> {
  protected:
    explicit TextsApart()
        : shape_(small_shape(4000)),
          model_(files_with(options_, GetParam() ? &shape_ : nullptr), options_,
                 open_device(options_.device)),
          plain_(model_.drafting(draft_options("none"))) {}

    void begin(Together& both) {
        want_.clear();
        for (size_t i : {0, 1}) {
            const Sampling sampling = sampling_at(i == 0 ? 0 : 0.8f, 7);
            want_.push_back(prompt_of(model_, i));
            for (int id : decode(*plain_.session, want_.back(), 100, sampling))
                want_.back().push_back(id);
            both.sequences[i].begin(sampling);
            both.sequences[i].append(prompt_of(model_, i));
            both.batch->prefill(both.sequences[i]);
        }
    }
    void expect_begins_as_wanted(const Sequence& sequence, size_t i) {
        const size_t count = std::min(sequence.tokens().size(), want_[i].size());
        EXPECT_EQ(first_tokens(sequence, count),
                  std::vector<int>(want_[i].begin(), want_[i].begin() + ptrdiff_t(count)));
    }
    // Continues the text from here to its end.
    void expect_finishes(Batch& batch, Sequence& sequence, const char* what) {
        batch.prefill(sequence);
        extend(batch, sequence, want_[1].size());
        EXPECT_EQ(first_tokens(sequence, want_[1].size()), want_[1]) << what;
    }

    const LoadOptions options_ = options_of(DType::F16, DType::F16);
    const ModelConfig shape_;
    Bundled model_;
    Model::Drafting plain_;
    std::vector<std::vector<int>> want_;
};

TEST_P(TextsApart, InOneBatch) {
    constexpr int kCycles = 16;
    for (const DraftOptions& draft : kTrees) {
        Together both(model_, "model", draft);
        begin(both);
        int accepted = 0;
        for (int cycle = 0; cycle < kCycles; ++cycle) {
            both.batch->propose(both.both);
            both.batch->verify(both.both);
            for (Cycle& one : both.cycles) {
                one.path = accept(one.tree, one.choices);
                accepted += int(one.path.nodes.size()) - 1;
            }
            both.batch->commit(both.both);
        }
        for (size_t i : {0, 1}) expect_begins_as_wanted(both.sequences[i], i);
        if (GetParam() == 0 && draft.tree && draft.tree->top_k == 1) {
            EXPECT_EQ(accepted, 2 * kCycles * draft.tree->levels);
        }
    }
}

TEST_P(TextsApart, ForkedAndCut) {
    for (const DraftOptions& draft : kTrees) {
        Together both(model_, "model", draft);
        begin(both);
        both.sequences.erase(both.sequences.begin());
        extend(*both.batch, both.sequences[0], want_[1].size());
        for (const int cut : {int(want_[1].size()) - 90, 64, 65}) {
            both.sequences.push_back(both.sequences[0].fork(cut));
            expect_finishes(*both.batch, both.sequences[1], "fork");
            both.sequences[0].truncate(cut);
            expect_finishes(*both.batch, both.sequences[0], "cut");
            both.sequences.pop_back();
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Drafters, TextsApart, testing::Values(0, 1), [](const auto& info) {
    return std::string(info.param == 0 ? "itself" : "narrow");
});

}  // namespace
}  // namespace aerie::test
