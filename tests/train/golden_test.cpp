// Losses, gradients and parameters are those of an independent trainer
// (tests/data/train/README.md).
#include <gtest/gtest.h>

#include <cmath>

#include "cpu/training/device.h"
#include "train/golden_run.h"
#include "train/needs_blas.h"

namespace aerie::test {
namespace {

using cpu::Precision;

class GoldenTraining : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTraining, FirstStepInDoubles) {
    const Golden golden(GetParam());
    TrainingRun run(cpu::open_training(Precision::f64), GetParam());
    expect_first_step(run, golden, 1e-9, 1e-9, 0);
}

TEST_P(GoldenTraining, TwentyStepsInFloats) {
    const Golden golden(GetParam());
    TrainingRun run(cpu::open_training(Precision::f32), GetParam());
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

INSTANTIATE_TEST_SUITE_P(Records, GoldenTraining, golden_names, name_of_golden);

}  // namespace
}  // namespace aerie::test
