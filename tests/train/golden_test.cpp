// Losses, gradients and parameters are those of an independent trainer
// (tests/data/train/README.md).
#include <gtest/gtest.h>

#include <cmath>

#include "cpu/training/device.h"
#include "train/eagle2_loss.h"
#include "train/eagle3_loss.h"
#include "train/golden.h"
#include "train/needs_blas.h"

namespace aerie::test {
namespace {

using cpu::Precision;
using train::TargetOutputs;
using train::TrainingTexts;

constexpr int kRows = 4 * 191;

// A training run as the records describe it.
class TrainingRun {
  public:
    TrainingRun(Precision precision, const std::string& name)
        : device_(cpu::open_training(precision)),
          target_(*device_),
          started_(*device_, name),
          name_(name) {
        if (name.starts_with("eagle3"))
            eagle3_ = std::make_unique<train::Eagle3Loss>(*device_, started_.head,
                                                          target_.embedding, kTest, kRows);
        else {
            eagle2_ = std::make_unique<train::Eagle2Loss>(
                *device_, started_.head, target_.embedding, target_.lm_head, kRows);
            noise_ = floats_of(train_data() / "noise", "noise");
        }
    }

    // The gradients of a step, and its loss.
    double loss(int step, bool is_noisy = true) {
        const TrainingTexts texts = texts_.batch(step);
        std::span<const float> noise;
        const size_t count = size_t(kRows) * 256;
        if (eagle2_ && is_noisy && step < 2)
            noise = std::span(noise_).subspan(size_t(step) * count, count);
        const TargetOutputs outputs =
            outputs_for(*device_, texts, target_.run(texts), started_.draft_ids, noise);
        started_.head.clear_gradients();
        return eagle3_ ? eagle3_->run(texts, outputs) : eagle2_->run(texts, outputs);
    }
    double update() { return started_.head.update(kRule, 0.5); }

    std::vector<double> values(const Matrix& m) {
        std::vector<double> read(m.size());
        device_->read(m, read);
        return read;
    }
    train::TrainedHead& head() { return started_.head; }
    std::vector<int> hits() const {
        std::vector<int> found;
        if (eagle2_) found.push_back(eagle2_->classification().hits);
        if (eagle3_)
            for (const train::DepthLoss& depth : eagle3_->depths()) found.push_back(depth.hits);
        return found;
    }
    std::vector<int> counted() const {
        std::vector<int> found;
        if (eagle2_) found.push_back(eagle2_->classification().rows);
        if (eagle3_)
            for (const train::DepthLoss& depth : eagle3_->depths()) found.push_back(depth.rows);
        return found;
    }

  private:
    static constexpr train::TrainingTimeTest kTest{4, 0.8};
    static constexpr AdamW kRule{.rate = 1e-3};

    std::unique_ptr<TrainingDevice> device_;
    TinyTarget target_;
    StartedHead started_;
    std::string name_;
    GoldenTexts texts_;
    std::unique_ptr<train::Eagle3Loss> eagle3_;
    std::unique_ptr<train::Eagle2Loss> eagle2_;
    std::vector<float> noise_;
};

// Hits and counts of a step of the record, depth by depth.
std::vector<int> of_step(const Json& step, const char* key) {
    std::vector<int> found;
    if (const Json* depths = step.find("depth"))
        for (const Json& depth : *depths->array()) found.push_back(int(depth.find(key)->number()));
    else
        found.push_back(int(step.find(key)->number()));
    return found;
}

class GoldenTraining : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTraining, FirstStepInDoubles) {
    const Golden golden(GetParam());
    TrainingRun run(Precision::f64, GetParam());
    const double want = golden.at({"first_step", "f64", "loss"}).number();
    EXPECT_NEAR(run.loss(0), want, 1e-9 * want);
    const Json& step = golden.at({"steps_f64"}).array()->front();
    EXPECT_EQ(run.counted(), of_step(step, "count"));
    EXPECT_EQ(run.hits(), of_step(step, "hits"));
    const Json& gradients = golden.at({"first_step", "f64", "gradients"});
    ASSERT_EQ(gradients.object()->size(), run.head().parameters().size());
    for (const train::Parameter& parameter : run.head().parameters())
        expect_summary(*gradients.find(parameter.name), run.values(parameter.gradient), 1e-9,
                       parameter.name);
}

TEST_P(GoldenTraining, TwentyStepsInFloats) {
    const Golden golden(GetParam());
    TrainingRun run(Precision::f32, GetParam());
    const Json::Array& steps = *golden.at({"steps_f64"}).array();
    ASSERT_EQ(steps.size(), 20u);
    std::vector<std::vector<double>> before;
    for (const train::Parameter& parameter : run.head().parameters())
        before.push_back(run.values(parameter.value));
    for (size_t i = 0; i < steps.size(); ++i) {
        const double loss = run.loss(int(i)), want = steps[i].find("loss")->number();
        EXPECT_NEAR(loss, want, 1e-5 * want) << "step " << i;
        EXPECT_EQ(run.counted(), of_step(steps[i], "count"));
        const std::vector<int> hits = run.hits(), wanted = of_step(steps[i], "hits");
        for (size_t d = 0; d < hits.size(); ++d) EXPECT_NEAR(hits[d], wanted[d], 2) << "step " << i;
        if (i == 0) {
            const Json& gradients = golden.at({"first_step", "f64", "gradients"});
            for (const train::Parameter& parameter : run.head().parameters())
                expect_summary(*gradients.find(parameter.name), run.values(parameter.gradient),
                               1e-4, parameter.name);
        }
        const double norm = run.update();
        EXPECT_NEAR(norm, steps[i].find("grad_norm")->number(), 1e-4 * norm) << "step " << i;
    }
    const double loss = run.loss(0, false), want = golden.at({"after", "f64", "loss"}).number();
    EXPECT_NEAR(loss, want, 1e-5 * want);
    const Json& after = golden.at({"after", "f64", "parameters"});
    for (size_t p = 0; p < before.size(); ++p) {
        const train::Parameter& parameter = run.head().parameters()[p];
        const std::vector<double> now = run.values(parameter.value);
        double way = 0;
        for (size_t i = 0; i < now.size(); ++i) way += std::pow(now[i] - before[p][i], 2);
        expect_summary(*after.find(parameter.name), now, 1e-2, parameter.name, std::sqrt(way));
    }
}

INSTANTIATE_TEST_SUITE_P(Records, GoldenTraining,
                         testing::Values("eagle3", "eagle2", "eagle3-bundled", "eagle2-bundled"),
                         [](const auto& info) {
                             std::string name = info.param;
                             std::replace(name.begin(), name.end(), '-', '_');
                             return name;
                         });

}  // namespace
}  // namespace aerie::test
