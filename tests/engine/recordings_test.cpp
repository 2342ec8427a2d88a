// A recording depends on shapes alone: on $AERIE_TEST_DEVICE nothing is recorded again after the
// first text of each kind.
#include <gtest/gtest.h>

#include "engine/bundled.h"

namespace aerie::test {
namespace {

class Recordings : public testing::TestWithParam<const char*> {};

TEST_P(Recordings, DoNotDependOnWhatIsAskedFor) {
    if (test_device() == "cpu") GTEST_SKIP() << "SKIPPED: $AERIE_TEST_DEVICE names no other device";
    constexpr int kTokens = 10, kPrompts = 10;
    Bundled model(bundled_options(DType::Q8_0));
    DraftOptions options = draft_options(GetParam());
    options.tree = TreeShape{12, 3, 4};
    const auto drafting = model.drafting(options);
    const std::vector<std::string> prompts = sixty_prompts();
    size_t longest = 0, shortest = SIZE_MAX;
    const auto recordings_after = [&](size_t prompt, const Sampling& sampling) {
        const std::vector<int> ids = model.encode(prompts[prompt]);
        longest = std::max(longest, ids.size());
        shortest = std::min(shortest, ids.size());
        Request request = model.request(ids, kTokens, sampling);
        request.eos_ids.clear();
        EXPECT_EQ(model.run(*drafting.session, request).ids.size(), size_t(kTokens));
        return model.backend().command_counts().recordings;
    };

    Sampling sampling = sampling_at(0.7f, 1);
    sampling.penalties = {1.1f, 0.2f, 0};
    const long first = recordings_after(0, sampling);
    EXPECT_GT(first, 0);
    for (size_t i = 1; i <= kPrompts; ++i) {
        sampling.filters.temperature = 0.3f + 0.1f * float(i);
        sampling.penalties = {1 + 0.05f * float(i), 0, 0.1f * float(i)};
        sampling.seed = i;
        EXPECT_EQ(recordings_after(i, sampling), first) << "prompt " << i;
    }
    EXPECT_GT(longest, shortest + 10);
    // Without penalties, and then greedily, other ops run, which are recorded once.
    for (const float temperature : {0.9f, 0.0f}) {
        const long then = recordings_after(0, sampling_at(temperature, 5));
        for (size_t i = 1; i < 3; ++i)
            EXPECT_EQ(recordings_after(i, sampling_at(temperature * 1.3f, i)), then)
                << "prompt " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, Recordings, testing::Values("none", "eagle2"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace aerie::test
