// The first step of each record (tests/data/train/README.md) on a device in f32.
#include <gtest/gtest.h>

#include "core/error.h"
#include "train/golden_run.h"
#include "train/tested_device.h"

namespace aerie::test {
namespace {

class GoldenStep : public testing::TestWithParam<std::string> {};

TEST_P(GoldenStep, IsTheRecords) {
    std::unique_ptr<TrainingDevice> device;
    try {
        device = open_tested_device();
    } catch (const Error& error) {
        GTEST_SKIP() << "SKIPPED: " << error.what();
    }
    TrainingRun run(std::move(device), GetParam());
    expect_first_step(run, Golden(GetParam()), 1e-5, 1e-4, 2);
}

INSTANTIATE_TEST_SUITE_P(Records, GoldenStep, golden_names, name_of_golden);

}  // namespace
}  // namespace aerie::test
