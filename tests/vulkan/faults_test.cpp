// A device that is lost or out of memory at any call: there is an Error of one line that names the
// device, nothing is leaked, and a device that is opened anew works.
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>

#include "engine/bundled.h"
#include "vulkan/device.h"
#include "vulkan/fault_table.h"
#include "vulkan/test_device.h"
#include "vulkan/vulkan_backend.h"

namespace aerie::test {
namespace {

using vulkan::Fault;
using vulkan::fault_record;

constexpr int kTokens = 8;

// How many calls of each function fail, spread over all of its calls; 0: every one.
long most_calls() {
    const char* count = std::getenv("AERIE_TEST_FAULTS");
    return count ? std::atol(count) : 2;
}

// Functions that may fail without an Error: there is another way, or nothing depends on them.
const std::set<std::string> kHarmless = {"vkAllocateDescriptorSets", "vkGetPipelineCacheData",
                                         "vkDeviceWaitIdle"};

class Faults : public testing::TestWithParam<bool> {
  protected:
    void SetUp() override {
        if (!vulkan::has_test_device()) GTEST_SKIP() << "SKIPPED: no Vulkan device here";
        folder_ =
            std::filesystem::temp_directory_path() / ("aerie_faults_" + std::to_string(getpid()));
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    // The limits of memory on phones, and of the drivers of some vendors.
    static void pretend_small(vulkan::Traits& traits) {
        traits.storage_range = 128 << 20;
        traits.allocation_bytes = std::min(traits.allocation_bytes, size_t(64) << 20);
    }

    // Generates a short text on a device of its own, with the fault.
    std::vector<int> generate_with(const Fault& fault) { return generate_on(open_with(fault)); }

    std::unique_ptr<Backend> open_with(const Fault& fault) {
        fault_record() = {.fault = fault, .struck = false, .calls = {}, .alive = {}};
        vulkan::DeviceChoices choices;
        choices.cache = folder_.string();
        choices.allow_unified = !GetParam();
        choices.profile = GetParam();
        if (GetParam()) choices.pretend = pretend_small;
        choices.patch = vulkan::patch_with_faults;
        // Every run makes the same calls, however long they take.
        choices.quiet_seconds = 1e9;
        choices.submission_work = 2e8;
        return vulkan::open_test_device(choices);
    }

    static std::vector<int> generate_on(std::unique_ptr<Backend> backend) {
        Bundled model(bundled_options(DType::Q8_0), std::move(backend));
        DraftOptions draft = draft_options("eagle2");
        draft.tree = {8, 2, 3};
        auto drafting = model.drafting(draft);
        Request request = model.request(model.encode("Once upon"), kTokens);
        request.eos_ids.clear();
        std::vector<int> ids = model.run(*drafting.session, request).ids;
        model.backend().sync();  // else the last ops could fail unseen
        return ids;
    }

    static void expect_nothing_left() {
        for (const auto& [kind, count] : fault_record().alive) EXPECT_EQ(count, 0) << kind;
    }

    void expect_error(const Fault& fault, const std::vector<int>& ids) {
        try {
            const std::vector<int> got = generate_with(fault);
            EXPECT_TRUE(kHarmless.count(fault.function)) << "no error";
            EXPECT_EQ(got, ids);
        } catch (const Error& error) {
            const std::string message = error.what();
            EXPECT_TRUE(message.starts_with("vulkan:0: ")) << message;
            EXPECT_EQ(message.find('\n'), std::string::npos) << message;
            EXPECT_NE(message.find(fault.result == VK_ERROR_DEVICE_LOST ? "device lost" : "memory"),
                      std::string::npos)
                << message;
        }
        EXPECT_TRUE(fault_record().struck);
        expect_nothing_left();
    }

    std::filesystem::path folder_;
};

TEST_P(Faults, NoneGivesTheIdsOfTheCpu) {
    EXPECT_EQ(generate_with({}), generate_on(open_device("cpu")));
    expect_nothing_left();
}

TEST_P(Faults, AtEveryFunction) {
    const std::vector<int> ids = generate_with({});
    ASSERT_EQ(ids.size(), size_t(kTokens));
    expect_nothing_left();
    const std::map<std::string, long> calls = fault_record().calls;
    constexpr VkResult kResults[] = {VK_ERROR_DEVICE_LOST, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                     VK_ERROR_OUT_OF_HOST_MEMORY};
    constexpr int kFunctionsBetween = 6;  // in the short form, since a device that works takes
                                          // longest
    int faults = 0, functions = 0;
    for (const auto& [function, count] : calls) {
        const long tried = most_calls() > 0 ? std::min(most_calls(), count) : count;
        for (long i = 0; i < tried; ++i) {
            const long call = tried > 1 ? i * (count - 1) / (tried - 1) : 0;
            // If every call is tried, it fails with every result; else with one after another.
            for (int r = 0; r < (most_calls() > 0 ? 1 : 3); ++r, ++faults) {
                const Fault fault{function, call, kResults[faults % 3]};
                SCOPED_TRACE(function + ", call " + std::to_string(call) + " of " +
                             std::to_string(count) + ", result " + std::to_string(fault.result));
                expect_error(fault, ids);
            }
        }
        if (++functions % kFunctionsBetween == 0 || most_calls() != 2) {
            EXPECT_EQ(generate_with({}), ids) << "after " << function;
        }
        std::printf("%s: %ld of %ld calls\n", function.c_str(), tried, count);
    }
    std::printf("%d faults at %zu functions\n", faults, calls.size());
}

INSTANTIATE_TEST_SUITE_P(Memory, Faults, testing::Bool(), [](const auto& info) {
    return info.param ? "staged_and_profiled" : "unified";
});

}  // namespace
}  // namespace aerie::test
