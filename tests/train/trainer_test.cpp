// A head is trained from nothing on the bundled model: the loss falls, the same seed gives the same
// head, and the engine drafts with what was written.
#include <gtest/gtest.h>

#include "core/error.h"
#include "cpu/training/device.h"
#include "engine/bundled.h"
#include "io/damage.h"
#include "io/input_file.h"
#include "train/golden.h"
#include "train/head_file.h"
#include "train/needs_blas.h"
#include "train/text_file.h"
#include "train/trainer.h"

namespace aerie::test {
namespace {

namespace fs = std::filesystem;
using train::DraftVocabulary;
using train::Evaluation;
using train::TrainedHead;
using train::TrainingTexts;

// The texts of the records: the last four are held out.
struct Texts {
    TrainingTexts learnt, held_out;

    Texts() {
        const GoldenTexts golden;
        for (int step = 0; step < 8; ++step) {
            const TrainingTexts batch = golden.batch(step);
            TrainingTexts& to = step < 7 ? learnt : held_out;
            to.tokens.insert(to.tokens.end(), batch.tokens.begin(), batch.tokens.end());
            to.mask.insert(to.mask.end(), batch.mask.begin(), batch.mask.end());
        }
    }
};

constexpr int kSteps = 40;

// A run of the trainer on aerie-tiny.
class Training {
  public:
    explicit Training(bool is_eagle3, const train::TrainingPlan& plan)
        : model_(bundled_options(DType::F16, DType::F16)),
          vocabulary_(is_eagle3
                          ? DraftVocabulary::most_frequent(texts_.learnt, TinyTarget::kVocab, 1024)
                          : DraftVocabulary::all(TinyTarget::kVocab)),
          taps_(is_eagle3 ? Taps{2, 3, 3} : Taps{6}),
          reader_(model_.backend(), model_.target(), *device_, 192, taps_, !is_eagle3),
          head_(*device_, {.hidden = 256,
                           .intermediate = 704,
                           .heads = 4,
                           .kv_heads = 2,
                           .head_dim = 64,
                           .taps = int(taps_.size()),
                           .vocab = TinyTarget::kVocab,
                           .draft_vocab = is_eagle3 ? vocabulary_.size() : 0}) {
        const fs::path folder = models_dir() / "aerie-tiny";
        const std::vector<float> table = floats_of(folder, "model.embed_tokens.weight"),
                                 lm_head = floats_of(folder, "lm_head.weight");
        const auto matrix = [&](const std::vector<float>& values) {
            const Matrix m = device_->allocate(TinyTarget::kVocab, 256);
            device_->write(m, std::span<const float>(values));
            return m;
        };
        train::initialise(*device_, head_, vocabulary_, lm_head, 5);
        trainer_ = std::make_unique<train::Trainer>(*device_, head_, reader_, vocabulary_,
                                                    matrix(table), matrix(lm_head), plan, 192);
    }

    double step() { return trainer_->step(texts_.learnt, double(trainer_->steps()) / kSteps); }
    Evaluation evaluate() { return trainer_->evaluate(texts_.held_out); }
    void write(const fs::path& folder) {
        train::write_head(folder, *device_, head_,
                          {model_.target().config(), vocabulary_, taps_, DType::F16});
    }
    std::vector<double> parameters() {
        std::vector<double> all;
        for (const train::Parameter& parameter : head_.parameters()) {
            std::vector<double> values(parameter.value.size());
            device_->read(parameter.value, values);
            all.insert(all.end(), values.begin(), values.end());
        }
        return all;
    }
    train::TrainedHead& head() { return head_; }
    TrainingDevice& device() { return *device_; }

  private:
    Texts texts_;
    Bundled model_;
    std::unique_ptr<TrainingDevice> device_ = cpu::open_training(cpu::Precision::f32, 2);
    DraftVocabulary vocabulary_;
    Taps taps_;
    train::TargetReader reader_;
    TrainedHead head_;
    std::unique_ptr<train::Trainer> trainer_;
};

constexpr train::TrainingPlan kPlan{.batch_rows = 384, .rate = 2e-3, .test = {3, 0.8}, .seed = 3};

class Trains : public testing::TestWithParam<bool> {};

TEST_P(Trains, OnHeldOutTexts) {
    Training training(GetParam(), kPlan);
    const Evaluation before = training.evaluate();
    for (int i = 0; i < kSteps; ++i) training.step();
    const Evaluation after = training.evaluate();
    EXPECT_LT(after.loss, 0.8 * before.loss);
    EXPECT_GT(after.agreement[0], before.agreement[0] + 0.1);
    EXPECT_GT(after.expected_tau(), before.expected_tau());

    const TestFolder folder;
    training.write(folder.path() / "head");
    LoadOptions options = bundled_options(DType::F16, DType::F16);
    options.head = folder.path() / "head";
    Bundled drafted(options);
    DraftOptions draft;
    draft.method = GetParam() ? "eagle3" : "eagle2";
    auto drafting = drafted.drafting(draft);
    EXPECT_EQ(drafting.drafter->reach().depth > 1, true);
}

TEST_P(Trains, TheSameHeadFromTheSameSeed) {
    Training first(GetParam(), kPlan), second(GetParam(), kPlan);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(first.step(), second.step());
    EXPECT_EQ(first.parameters(), second.parameters());
}

INSTANTIATE_TEST_SUITE_P(Kinds, Trains, testing::Bool(),
                         [](const auto& info) { return info.param ? "eagle3" : "eagle2"; });

// The inputs of a training, as the target computes them in its own passes, are those of the
// records.
class Reads : public testing::TestWithParam<bool> {};

TEST_P(Reads, WhatTheTargetComputes) {
    const bool is_eagle3 = GetParam();
    Bundled model(bundled_options(DType::F32, DType::F32));
    const std::unique_ptr<TrainingDevice> device = cpu::open_training(cpu::Precision::f64);
    TinyTarget target(*device);
    const StartedHead started(*device, is_eagle3 ? "eagle3" : "eagle2");
    const DraftVocabulary vocabulary =
        is_eagle3 ? DraftVocabulary::of(started.draft_ids, TinyTarget::kVocab)
                  : DraftVocabulary::all(TinyTarget::kVocab);
    train::TargetReader reader(model.backend(), model.target(), *device, 192,
                               is_eagle3 ? Taps{2, 3, 5} : Taps{6}, !is_eagle3);
    const TrainingTexts texts = GoldenTexts().batch(1);
    const train::TargetOutputs got = reader.read(texts, vocabulary);
    const train::TargetOutputs want =
        outputs_for(*device, texts, target.run(texts), started.draft_ids);
    // Targets and what can be said are made for the rows that count alone.
    std::vector<bool> counts;
    for (const std::vector<bool>& mask : texts.mask)
        counts.insert(counts.end(), mask.begin(), mask.end() - 1);
    ASSERT_EQ(int(counts.size()), texts.rows());
    EXPECT_TRUE(std::count(counts.begin(), counts.end(), false) > 0);
    const auto expect_equal = [&](const Matrix& a, const Matrix& b, const char* what,
                                  bool only_counted = false) {
        ASSERT_EQ(a.size(), b.size()) << what;
        std::vector<double> of_a(a.size()), of_b(b.size());
        device->read(a, of_a);
        device->read(b, of_b);
        double largest = 0, difference = 0;
        for (size_t i = 0; i < of_a.size(); ++i) {
            if (only_counted && !counts[i / size_t(a.cols)]) continue;
            largest = std::max(largest, std::abs(of_b[i]));
            difference = std::max(difference, std::abs(of_a[i] - of_b[i]));
        }
        EXPECT_LE(difference, 2e-3 * largest) << what;  // the reader's KV cache is in f16
    };
    expect_equal(got.features, want.features, "features");
    expect_equal(got.targets, want.targets, "targets", true);
    if (!is_eagle3) expect_equal(got.goals, want.goals, "goals");
    for (size_t i = 0; i < counts.size(); ++i)
        EXPECT_EQ(got.can_be_said[i], counts[i] && want.can_be_said[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Kinds, Reads, testing::Bool(),
                         [](const auto& info) { return info.param ? "eagle3" : "eagle2"; });

TEST(Noise, IsUniform) {
    const std::vector<float> noise = train::uniform_noise(10'000, 0.1, 3);
    double sum = 0, squares = 0;
    for (const float n : noise) {
        ASSERT_LE(std::abs(n), 0.1f);
        sum += n;
        squares += double(n) * double(n);
    }
    EXPECT_NEAR(sum / 10'000, 0, 2e-3);
    EXPECT_NEAR(squares / 10'000, 0.01 / 3, 1e-4);
}

TEST(Vocabulary, HasTheTokensThatAnswersHaveMost) {
    const TrainingTexts texts{{{5, 1, 1, 3, 9, 9}}, {{true, true, true, false, true, true}}};
    EXPECT_EQ(DraftVocabulary::most_frequent(texts, 10, 3).ids, (std::vector<int>{1, 5, 9}));
    EXPECT_EQ(DraftVocabulary::most_frequent(texts, 10, 5).ids, (std::vector<int>{0, 1, 2, 5, 9}));
    EXPECT_EQ(DraftVocabulary::most_frequent(texts, 10, 99).size(), 10);
}

class Appended : public testing::Test {
  protected:
    TestFolder folder_;
    fs::path file_ = folder_.path() / "texts.jsonl";
    train::TextFile open() { return train::TextFile(file_, "tiny", 100); }
    std::string refused() {
        try {
            open();
            return "";
        } catch (const Error& error) {
            return error.what();
        }
    }
};

TEST_F(Appended, ComesBack) {
    open().append("a", "code", {1, 2, 3}, {false, true, true});
    train::TextFile file = open();
    file.append("b", "", {4, 5}, {false, true});
    const train::TextFile read = open();
    EXPECT_EQ(read.texts().tokens, (std::vector<std::vector<int>>{{1, 2, 3}, {4, 5}}));
    EXPECT_EQ(read.texts().mask,
              (std::vector<std::vector<bool>>{{false, true, true}, {false, true}}));
    EXPECT_TRUE(read.has("a") && read.has("b") && !read.has("c"));
    EXPECT_EQ(read.id(0) + read.kind(0) + read.id(1) + read.kind(1), "acodeb");
}

// Whatever number of bytes a killed program has written, the whole lines come back and the next one
// follows them.
TEST_F(Appended, LosesALineThatIsNotWhole) {
    open().append("a", "", {1, 2, 3}, {false, true, true});
    const std::string before = read_text(file_, 1 << 20);
    open().append("b", "", {4, 5}, {false, true});
    const std::string after = read_text(file_, 1 << 20);
    for (size_t bytes = before.size(); bytes < after.size(); ++bytes) {
        folder_.write("texts.jsonl", after.substr(0, bytes));
        EXPECT_FALSE(open().has("b")) << bytes;
        EXPECT_EQ(read_text(file_, 1 << 20), before);
        open().append("b", "", {4, 5}, {false, true});
        EXPECT_EQ(read_text(file_, 1 << 20), after);
    }
}

TEST_F(Appended, IsRefusedWithItsLine) {
    open();
    EXPECT_EQ(refused(), "");
    const std::string head = read_text(file_, 1 << 20);
    for (const auto& [line, why] : std::vector<std::pair<std::string, std::string>>{
             {"{}", "no \"id\""},
             {R"({"id":"a","ids":[1,2],"mask":"0"})", "the same length"},
             {R"({"id":"a","ids":[1,100],"mask":"01"})", "does not have"},
             {R"({"id":"a","ids":[1,-1],"mask":"01"})", "does not have"},
             {R"({"id":"a","ids":[1,1.5],"mask":"01"})", "does not have"},
             {"nonsense", "line 2"}}) {
        folder_.write("texts.jsonl", head + line + "\n");
        EXPECT_NE(refused().find(why), std::string::npos) << refused();
        EXPECT_NE(refused().find("line 2"), std::string::npos) << refused();
    }
    folder_.write("texts.jsonl", "{\"schema\":\"aerie-logprobs-1\"}\n");
    EXPECT_NE(refused().find("not a file of training texts"), std::string::npos);
    // A program was stopped while it wrote the first line.
    for (const size_t bytes : {size_t(0), head.size() / 2, head.size() - 1}) {
        folder_.write("texts.jsonl", head.substr(0, bytes));
        EXPECT_EQ(refused(), "") << bytes;
        EXPECT_EQ(read_text(file_, 1 << 20), head);
    }
    folder_.write("texts.jsonl", R"({"schema":"aerie-texts-1","model":"other"})"
                                 "\n");
    EXPECT_NE(refused().find("texts of other, not of tiny"), std::string::npos) << refused();
}

}  // namespace
}  // namespace aerie::test
