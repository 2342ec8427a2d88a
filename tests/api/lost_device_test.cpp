// A Vulkan device is lost or out of memory at any call. A program that embeds the library gets a
// status and one line, nothing is left behind, and the next call works.
#include <algorithm>
#include <cstdlib>
#include <set>

#include "api/embedded.h"
#include "backend/registry.h"
#include "core/error.h"
#include "cpu/cpu_backend.h"
#include "vulkan/device.h"
#include "vulkan/fault_table.h"
#include "vulkan/vulkan_backend.h"
#include "vulkan_name.h"

// The registry of this program, which replaces backends/registry.cpp: devices with faults.
namespace aerie {

std::string best_device(std::span<const Capabilities>) {
    return "cpu";
}

std::vector<Capabilities> list_devices() {
    std::vector<Capabilities> devices = vulkan_capabilities();
    devices.push_back(cpu_capabilities());
    return devices;
}

std::unique_ptr<Backend> open_device(const std::string& name, const DeviceOptions& options) {
    if (name == "cpu") return open_cpu(options.threads);
    vulkan::DeviceChoices choices;
    choices.patch = vulkan::patch_with_faults;
    // Every run makes the same calls, however long they take.
    choices.quiet_seconds = 1e9;
    choices.submission_work = 2e8;
    return open_vulkan(name, choices);
}

namespace test {
namespace {

using vulkan::Fault;
using vulkan::fault_record;

// How many calls of each function fail, spread over all of its calls; 0: every call.
long most_calls() {
    const char* count = std::getenv("AERIE_TEST_FAULTS");
    return count ? std::atol(count) : 2;
}

// Functions in which a fault is no failure: there is another way, or nothing depends on them.
const std::set<std::string> kHarmless = {"vkAllocateDescriptorSets", "vkGetPipelineCacheData",
                                         "vkDeviceWaitIdle"};

class LostDevice : public testing::Test {
  protected:
    void SetUp() override {
        if (vulkan_capabilities().empty()) GTEST_SKIP() << "SKIPPED: no Vulkan device here";
        options_.device = device_.c_str();
        options_.context = 128;
        options_.weights = "q8_0";
        options_.tree_nodes = 8;
        options_.tree_levels = 2;
        options_.tree_top_k = 3;
    }

    // The text of a short answer, or "" and the line that says why there is none.
    std::string answer_with(const Fault& fault, std::string& message) {
        fault_record() = {.fault = fault, .struck = false, .calls = {}, .alive = {}};
        aerie_model* opened = nullptr;
        aerie_status status = aerie_model_open(context_.handle(), &options_, &opened);
        message = status == AERIE_OK ? "" : aerie_context_message(context_.handle());
        if (status != AERIE_OK) expect_cause(aerie_context_cause(context_.handle()), message);
        const std::unique_ptr<aerie_model, Free> model(opened);
        if (!model) {
            EXPECT_EQ(status, AERIE_ERROR) << message;
            return "";
        }
        return answer_of(model.get(), message);
    }

    std::string answer_of(aerie_model* model, std::string& message) {
        aerie_session* made = nullptr;
        aerie_status status = aerie_session_create(model, &made);
        if (status != AERIE_OK) message = aerie_model_message(model);
        const std::unique_ptr<aerie_session, Free> session(made);
        if (!session) return "";
        const aerie_request request = small_request(8);
        EXPECT_EQ(aerie_session_begin(made, &request), AERIE_OK);
        status = aerie_session_run(made, nullptr, nullptr);
        struck_ = fault_record().struck;
        if (status == AERIE_OK) return answer_text(made);
        EXPECT_EQ(status, AERIE_ERROR);
        message = aerie_session_message(made);
        expect_cause(aerie_session_cause(made), message);
        expect_usable(made);
        return "";
    }

    // A program that asks for the cause takes another device, or a smaller model.
    static void expect_cause(aerie_cause cause, const std::string& message) {
        EXPECT_TRUE(cause == AERIE_CAUSE_DEVICE_LOST || cause == AERIE_CAUSE_DEVICE_MEMORY ||
                    cause == AERIE_CAUSE_NO_DEVICE)
            << aerie_cause_name(cause) << ": " << message;
    }

    static std::string answer_text(aerie_session* session) {
        aerie_answer answer = aerie_answer_init();
        EXPECT_EQ(aerie_session_answer(session, &answer), AERIE_OK);
        return answer.text;
    }

    // A session that lost its device still has its ids, and reports again that the device is gone.
    static void expect_usable(aerie_session* session) {
        const int32_t* ids = nullptr;
        size_t count = 0;
        EXPECT_EQ(aerie_session_ids(session, &ids, &count, nullptr), AERIE_OK);
        EXPECT_GT(count, 20u);
        const aerie_request request = small_request(8);
        EXPECT_EQ(aerie_session_begin(session, &request), AERIE_OK);
        EXPECT_EQ(aerie_session_step(session, nullptr), AERIE_ERROR);
        EXPECT_STRNE(aerie_session_message(session), "");
    }

    static void expect_nothing_left() {
        for (const auto& [kind, count] : fault_record().alive) EXPECT_EQ(count, 0) << kind;
    }

    void expect_error(const Fault& fault, const std::string& whole) {
        std::string message;
        const std::string text = answer_with(fault, message);
        if (message.empty()) {
            EXPECT_TRUE(kHarmless.count(fault.function) || !struck_) << "no error";
            EXPECT_EQ(text, whole);
        } else {
            EXPECT_EQ(message.rfind("vulkan:0: ", 0), 0u) << message;
            EXPECT_EQ(message.find('\n'), std::string::npos) << message;
        }
        EXPECT_TRUE(fault_record().struck);
        expect_nothing_left();
    }

    Context context_;
    const std::string device_ = vulkan_name();
    aerie_model_options options_ = small_options();
    bool struck_ = false;  // before the newest answer had ended, and not while everything was freed
};

TEST_F(LostDevice, AtEveryFunction) {
    std::string message;
    const std::string whole = answer_with({}, message);
    ASSERT_GT(whole.size(), 8u) << message;
    expect_nothing_left();
    const std::map<std::string, long> calls = fault_record().calls;
    constexpr VkResult kResults[] = {VK_ERROR_DEVICE_LOST, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                     VK_ERROR_OUT_OF_HOST_MEMORY};
    int faults = 0;
    for (const auto& [function, count] : calls) {
        const long tried = most_calls() > 0 ? std::min(most_calls(), count) : count;
        for (long i = 0; i < tried; ++i, ++faults) {
            const long call = tried < count ? i * (count - 1) / tried : i;
            SCOPED_TRACE(function + ", call " + std::to_string(call) + " of " +
                         std::to_string(count));
            expect_error({function, call, kResults[faults % 3]}, whole);
        }
    }
    EXPECT_EQ(answer_with({}, message), whole) << "the device opened anew: " << message;
    std::printf("%d faults at %zu functions\n", faults, calls.size());
}

// While a lost device is still held, another device can take over.
TEST_F(LostDevice, TheCpuTakesOver) {
    std::string message;
    const std::string whole = answer_with({}, message);
    const long submits = fault_record().calls.at("vkQueueSubmit");
    fault_record() = {.fault = {"vkQueueSubmit", submits / 2, VK_ERROR_DEVICE_LOST},
                      .struck = false,
                      .calls = {},
                      .alive = {}};
    aerie_model* lost = nullptr;
    ASSERT_EQ(aerie_model_open(context_.handle(), &options_, &lost), AERIE_OK);
    const std::unique_ptr<aerie_model, Free> owner(lost);
    EXPECT_EQ(answer_of(lost, message), "");
    EXPECT_NE(message.find("device lost"), std::string::npos) << message;
    options_.device = "cpu";
    const Model model(context_, options_);
    EXPECT_EQ(answer_of(model.handle(), message), whole);
}

}  // namespace
}  // namespace test
}  // namespace aerie
