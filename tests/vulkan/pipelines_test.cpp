// Pipelines are compiled side by side while a list is recorded, and a line of progress says how
// many are done.
#include "vulkan/pipelines.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "backend/backend.h"
#include "vulkan/test_device.h"
#include "vulkan/vulkan_backend.h"

namespace aerie::vulkan {
namespace {

using namespace std::chrono_literals;

// A driver that compiles slowly. Vulkan's functions have no closure.
PFN_vkCreateComputePipelines real_create;
std::atomic<int> at_work, most_at_work;
int width() {
    return int(std::thread::hardware_concurrency());
}

VkResult create_slowly(VkDevice device, VkPipelineCache cache, uint32_t count,
                       const VkComputePipelineCreateInfo* infos, const VkAllocationCallbacks* with,
                       VkPipeline* made) {
    const int now = ++at_work;
    for (int most = most_at_work; now > most && !most_at_work.compare_exchange_weak(most, now);)
        continue;
    std::this_thread::sleep_for(120ms);
    const VkResult result = real_create(device, cache, count, infos, with, made);
    --at_work;
    return result;
}

TEST(Pipelines, AreCompiledSideBySide) {
    if (!has_test_device()) GTEST_SKIP() << "SKIPPED: no Vulkan device here";
    std::set<std::string> said;
    DeviceChoices choices;
    choices.patch = [](VolkDeviceTable& vk) {
        real_create = vk.vkCreateComputePipelines;
        vk.vkCreateComputePipelines = create_slowly;
    };
    choices.on_progress = [&](const std::string& line) { said.insert(line); };
    at_work = most_at_work = 0;
    const auto backend = open_test_device(choices);

    const Buffer memory = backend->allocate(4096);
    const auto tensor = [&](size_t i, int cols) {
        return Tensor{memory.get(), i * 256, DType::F32, 1, cols, cols};
    };
    const Tensor x = tensor(0, 64), sum = tensor(1, 64), gated = tensor(2, 32);
    const Tensor same = tensor(3, 32), normal = tensor(4, 32);
    const std::vector<float> ones(64, 1.0f);
    backend->write(x, ones.data());
    backend->run(Add{sum, x, x});
    backend->write(x, std::vector<float>(64, 7.0f).data());  // ordered after the sum
    backend->run(Gated{gated, sum, Activation::silu});
    backend->run(Copy{same, gated});
    backend->run(RmsNorm{normal, same, tensor(1, 32), 1e-9f});
    std::vector<float> got(32), last(64);
    backend->read(normal, got.data());
    backend->read(x, last.data());
    for (float value : got) EXPECT_NEAR(value, 2, 1e-6);
    EXPECT_EQ(last[63], 7);
    EXPECT_EQ(most_at_work, std::min(4, width()));
    EXPECT_FALSE(said.empty());
    for (const std::string& line : said) {
        EXPECT_NE(line.find("compiling shaders for "), std::string::npos) << line;
        EXPECT_TRUE(line.ends_with(" of 4")) << line;
    }
}

}  // namespace
}  // namespace aerie::vulkan
