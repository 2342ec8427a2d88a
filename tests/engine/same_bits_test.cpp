// Quantised models have the same bits on every device: logits of $AERIE_TEST_DEVICE against the
// CPU's, after a prompt and of every node of a tree, and a sampled text.
#include <gtest/gtest.h>

#include "engine/checks.h"

namespace aerie::test {
namespace {

BitsRun run(const std::string& device, DType type) {
    LoadOptions options = bundled_options(type);
    options.device = device;
    Bundled model(options);
    return run_for_bits(model);
}

class SameBits : public testing::TestWithParam<DType> {
    void SetUp() override { skip_unless_stored(GetParam()); }
};

TEST_P(SameBits, AsTheCpu) {
    if (test_device() == "cpu") GTEST_SKIP() << "SKIPPED: $AERIE_TEST_DEVICE names no other device";
    skip_unless_stored(GetParam());
    if (IsSkipped()) return;
    EXPECT_EQ(bits_finding(run("cpu", GetParam()), run(test_device(), GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(Types, SameBits,
                         testing::Values(DType::Q8_0, DType::Q4_0, DType::Q4_K, DType::Q5_K,
                                         DType::Q6_K),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace aerie::test
