// Ops check their shapes in every test program, in every build, so a backend may rely on them.
#include "ops/device_test.h"

namespace aerie {
namespace {

class Checks : public DeviceTest {
  protected:
    void SetUp() override {
        DeviceTest::SetUp();
        testing::GTEST_FLAG(death_test_style) = "fast";  // the program dies before anything runs
    }
};

TEST_P(Checks, WrongShapesEndATestProgram) {
    const Array small = poisoned(2, 32), large = poisoned(3, 32), wide = poisoned(2, 48);
    EXPECT_DEATH((Copy{small, large}.check(*backend_)), "is_activation");
    EXPECT_DEATH((Add{small, small, wide}.check(*backend_)), "is_f32");
    EXPECT_DEATH((Gated{small, wide, Activation::silu}.check(*backend_)), "is_activation");
    const Array ids = poisoned_indices(1, 2);
    EXPECT_DEATH((GatherRows{large, small, ids}.check(*backend_)), "is_index");
    EXPECT_DEATH((Copy{ids, small}.check(*backend_)), "is_activation");
    Copy{small, small}.check(*backend_);
}

INSTANTIATE_TEST_SUITE_P(Devices, Checks, testing::ValuesIn(devices()), device_name);

}  // namespace
}  // namespace aerie
