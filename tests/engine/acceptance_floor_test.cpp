// Drafts are accepted on $AERIE_TEST_DEVICE as often as on the CPU. Texts cannot show a head that
// reads stale or wrong data: they stay equal and only become slower. The CPU itself is held to the
// golden tau (golden_test).
#include <gtest/gtest.h>

#include "engine/checks.h"

namespace aerie::test {
namespace {

int from_environment(const char* name, int otherwise) {
    const char* value = std::getenv(name);
    return value ? std::atoi(value) : otherwise;
}

DraftOptions eagle2() {
    DraftOptions draft = draft_options("eagle2");
    draft.tree = {16, 4, 4};
    return draft;
}

AcceptanceRun run(const std::string& device, DType type, const DraftOptions& draft) {
    LoadOptions options = bundled_options(type);
    options.device = device;
    Bundled model(options);
    return run_for_acceptance(model, draft, from_environment("AERIE_TEST_PROMPTS", 4),
                              from_environment("AERIE_TEST_TOKENS", 32));
}

class AcceptanceFloor : public testing::TestWithParam<DType> {};

TEST_P(AcceptanceFloor, AsTheCpu) {
    if (test_device() == "cpu") GTEST_SKIP() << "SKIPPED: $AERIE_TEST_DEVICE names no other device";
    const DType type = GetParam();
    const bool bits_agree = type == DType::Q8_0 || type == DType::Q4_0;
    std::vector<DraftOptions> drafts = {eagle2()};
    if (bits_agree) drafts.push_back(draft_options("chain"));
    for (const DraftOptions& draft : drafts) {
        const AcceptanceRun want = run("cpu", type, draft), got = run(test_device(), type, draft);
        std::printf("%s: tau %.4f over %d cycles, the CPU's %.4f\n", name(type), got.tau(),
                    got.cycles, want.tau());
        EXPECT_EQ(acceptance_finding(want, got, bits_agree), "");
    }
}

INSTANTIATE_TEST_SUITE_P(Types, AcceptanceFloor,
                         testing::Values(DType::F16, DType::Q8_0, DType::Q4_0),
                         [](const auto& info) { return std::string(name(info.param)); });

}  // namespace
}  // namespace aerie::test
