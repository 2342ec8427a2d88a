// Repeats the training runs of the records (golden.h) on a device.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "train/eagle2_loss.h"
#include "train/eagle3_loss.h"
#include "train/golden.h"

namespace aerie::test {

// A training run as the records describe it.
class TrainingRun {
  public:
    TrainingRun(std::unique_ptr<TrainingDevice> device, const std::string& name)
        : device_(std::move(device)), target_(*device_), started_(*device_, name), name_(name) {
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
        const train::TrainingTexts texts = texts_.batch(step);
        std::span<const float> noise;
        const size_t count = size_t(kRows) * 256;
        if (eagle2_ && is_noisy && step < 2)
            noise = std::span(noise_).subspan(size_t(step) * count, count);
        const train::TargetOutputs outputs =
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
    static constexpr int kRows = 4 * 191;
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
inline std::vector<int> of_step(const Json& step, const char* key) {
    std::vector<int> found;
    if (const Json* depths = step.find("depth"))
        for (const Json& depth : *depths->array()) found.push_back(int(depth.find(key)->number()));
    else
        found.push_back(int(step.find(key)->number()));
    return found;
}

// Loss, hits and gradients of the first step are those of the record. Errors are relative; as many
// hits as `hits_apart` may differ.
inline void expect_first_step(TrainingRun& run, const Golden& golden, double loss_error,
                              double gradient_error, int hits_apart) {
    const double want = golden.at({"first_step", "f64", "loss"}).number();
    EXPECT_NEAR(run.loss(0), want, loss_error * want);
    const Json& step = golden.at({"steps_f64"}).array()->front();
    EXPECT_EQ(run.counted(), of_step(step, "count"));
    const std::vector<int> hits = run.hits(), wanted = of_step(step, "hits");
    ASSERT_EQ(hits.size(), wanted.size());
    for (size_t d = 0; d < hits.size(); ++d) EXPECT_NEAR(hits[d], wanted[d], hits_apart);
    const Json& gradients = golden.at({"first_step", "f64", "gradients"});
    ASSERT_EQ(gradients.object()->size(), run.head().parameters().size());
    for (const train::Parameter& parameter : run.head().parameters())
        expect_summary(*gradients.find(parameter.name), run.values(parameter.gradient),
                       gradient_error, parameter.name);
}

inline const auto golden_names =
    testing::Values("eagle3", "eagle2", "eagle3-bundled", "eagle2-bundled");

inline std::string name_of_golden(const testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

}  // namespace aerie::test
