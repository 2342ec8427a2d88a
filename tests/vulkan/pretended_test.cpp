// The device that is here pretends to be a poorer one: small bindings, small allocations, memory
// that the host reads slowly. Also tests which device is opened, and what is said of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "backend/backend.h"
#include "core/error.h"
#include "io/damage.h"
#include "vulkan/backend.h"
#include "vulkan/device.h"
#include "vulkan/test_device.h"
#include "vulkan/vulkan_backend.h"

namespace aerie::vulkan {
namespace {

constexpr size_t kGigabyte = size_t(1) << 30;

using test::error_of;

class Pretended : public testing::Test {
  protected:
    void SetUp() override {
        if (!has_test_device()) GTEST_SKIP() << "SKIPPED: no Vulkan device here";
    }

    static std::unique_ptr<Backend> open(const std::function<void(Traits&)>& pretend,
                                         DeviceChoices choices = {}) {
        choices.pretend = pretend;
        return open_test_device(choices);
    }
};

TEST_F(Pretended, DeviceThatLacksSomethingIsNotOpened) {
    const std::string message =
        error_of([] { open([](Traits& traits) { traits.shared_bytes = 16 << 10; }); });
    EXPECT_NE(message.find("cannot run aerie: it has at most 16 KiB"), std::string::npos)
        << message;
}

// The message is not "no memory is left", which would be untrue.
TEST_F(Pretended, LargeAllocationIsRefusedTruthfully) {
    const auto backend = open([](Traits& traits) { traits.allocation_bytes = 64 << 20; });
    const Buffer fits = backend->allocate(64 << 20);
    const std::string message = error_of([&] { backend->allocate(65 << 20); });
    EXPECT_NE(message.find("gives at most 64 MiB of memory in one piece, and 65 MiB are wanted"),
              std::string::npos)
        << message;
}

TEST_F(Pretended, LargeBindingIsRefused) {
    const auto backend = open([](Traits& traits) { traits.storage_range = 128 << 20; });
    const Buffer memory = backend->allocate(200 << 20), small = backend->allocate(256);
    constexpr int kColumns = 1 << 20;
    const Tensor x = dense(memory.get(), DType::F32, 48, kColumns);
    backend->run(GatherRows{x.row_range(0, 1), x.row_range(1, 32),
                            dense(small.get(), DType::I32, 1, 1)});  // 128 MiB
    backend->sync();
    backend->run(
        GatherRows{x.row_range(0, 1), x.row_range(1, 33), dense(small.get(), DType::I32, 1, 1)});
    const std::string message = error_of([&] { backend->sync(); });
    EXPECT_NE(message.find("gather_rows works on 132 MiB in one piece"), std::string::npos)
        << message;
}

// Vulkan's functions have no closure.
PFN_vkCreateBuffer real_create;
PFN_vkCmdFillBuffer real_fill;
VkDeviceSize filled_at, filled_bytes;

VkResult create_small(VkDevice device, const VkBufferCreateInfo* info,
                      const VkAllocationCallbacks* with, VkBuffer* made) {
    VkBufferCreateInfo small = *info;
    small.size = std::min<VkDeviceSize>(small.size, 1 << 16);
    return real_create(device, &small, with, made);
}
void fill_seen(VkCommandBuffer commands, VkBuffer buffer, VkDeviceSize at, VkDeviceSize bytes,
               uint32_t data) {
    filled_at = at;
    filled_bytes = bytes;
    real_fill(commands, buffer, 0, VK_WHOLE_SIZE, data);
}

// The allocation has more words than an int counts.
TEST_F(Pretended, ManyGigabytesAreZeroed) {
    DeviceChoices choices;
    choices.allow_unified = false;
    choices.patch = [](VolkDeviceTable& vk) {
        real_create = vk.vkCreateBuffer;
        real_fill = vk.vkCmdFillBuffer;
        vk.vkCreateBuffer = create_small;
        vk.vkCmdFillBuffer = fill_seen;
    };
    const auto backend =
        open([](Traits& traits) { traits.allocation_bytes = 64 * kGigabyte; }, choices);
    const Buffer memory = backend->allocate(9 * kGigabyte);
    backend->sync();
    EXPECT_EQ(filled_at, 0u);
    EXPECT_EQ(filled_bytes, VK_WHOLE_SIZE);
}

// As on the integrated GPUs of most laptops, the host reads through memory that it caches.
TEST_F(Pretended, MemoryThatTheHostDoesNotCacheIsReadThroughSomeThatItDoes) {
    for (const bool cached : {true, false}) {
        const auto backend = open([&](Traits& traits) {
            traits.type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
            for (uint32_t i = 0; i < traits.memory.memoryTypeCount && !cached; ++i)
                traits.memory.memoryTypes[i].propertyFlags &=
                    ~uint32_t(VK_MEMORY_PROPERTY_HOST_CACHED_BIT);
        });
        const Buffer memory = backend->allocate(4096);
        const Tensor x = dense(memory.get(), DType::F32, 4, 16), sum = [&] {
            Tensor t = x;
            t.offset_bytes = 1024;
            return t;
        }();
        std::vector<float> values(64, 1.5f), got(64);
        backend->write(x, values.data());
        backend->run(Add{sum, x, x});
        backend->read(sum, got.data());
        EXPECT_EQ(got, std::vector<float>(64, 3.0f)) << cached;
        EXPECT_EQ(backend->command_counts().submissions, 1);
    }
}

std::vector<float> product_in_parts(size_t most_bytes, long* barriers) {
    DeviceChoices choices;
    choices.pretend = [=](Traits& traits) {
        traits.allocation_bytes = std::min(traits.allocation_bytes, most_bytes);
    };
    const auto backend = open_test_device(choices);
    constexpr int kRows = 2, kInner = 4096, kOutputs = 100;
    std::vector<float> values(kOutputs * kInner), out(kRows * kOutputs);
    for (size_t i = 0; i < values.size(); ++i) values[i] = float(i * 2654435761u % 997) - 498;
    const WeightBlock block{DType::F32, DType::F32, values.data(), kOutputs, kInner};
    const auto weight = backend->upload_weight({&block, 1});
    const Buffer memory = backend->allocate(1 << 16);
    const Tensor x = dense(memory.get(), DType::F32, kRows, kInner);
    Tensor product = dense(memory.get(), DType::F32, kRows, kOutputs), bias = product;
    product.offset_bytes = 1 << 15;
    bias.offset_bytes = (1 << 15) + 4096;
    bias.rows = 1;
    backend->write(x, values.data());
    backend->write(bias, values.data());
    backend->sync();
    const long before = backend->command_counts().barriers;
    backend->run(Matmul{product, x, *weight, Accumulate::no, bias});
    backend->read(product, out.data());
    *barriers = backend->command_counts().barriers - before;
    return out;
}

TEST_F(Pretended, PartsOfAWeightDoNotWaitForEachOther) {
    long of_whole = 0, of_parts = 0;
    const std::vector<float> whole = product_in_parts(kGigabyte, &of_whole);
    // Four parts: 32 rows of 4096 floats in each but the last.
    EXPECT_EQ(product_in_parts(600000, &of_parts), whole);
    EXPECT_EQ(of_parts, of_whole);
}

// Sets $AERIE_TEST_VULKAN until the end of a scope.
class Named {
  public:
    explicit Named(const std::string& name) {
        if (test::is_vulkan_named()) before_ = std::getenv("AERIE_TEST_VULKAN");
        ::setenv("AERIE_TEST_VULKAN", name.c_str(), 1);
    }
    ~Named() { ::setenv("AERIE_TEST_VULKAN", before_.c_str(), 1); }

  private:
    std::string before_;
};

TEST_F(Pretended, TestsOpenTheDeviceThatIsNamed) {
    const auto instance = Instance::get();
    for (size_t i = 0; i < instance->devices().size(); ++i) {
        const Traits& traits = instance->devices()[i].traits;
        for (const std::string& name : {std::to_string(i), traits.uuid}) {
            const Named named(name);
            EXPECT_EQ(test_device_index(*instance), i);
            if (!traits.missing.empty()) continue;
            EXPECT_EQ(open_test_device({})->capabilities().name, "vulkan:" + std::to_string(i));
        }
        const Named named(traits.name.substr(traits.name.size() / 2));
        EXPECT_NE(instance->devices()[test_device_index(*instance)].traits.name.find(
                      traits.name.substr(traits.name.size() / 2)),
                  std::string::npos);
    }
    const Named named("no card of this name");
    EXPECT_TRUE(has_test_device());  // so that nothing is skipped
    const std::string message = error_of([] { open_test_device({}); });
    EXPECT_NE(message.find("there is no such Vulkan device; there is 0 ("), std::string::npos)
        << message;
}

// The details of a device say whether same_bits may fail there by right.
TEST_F(Pretended, DevicesTellWhoseBitsTheyGive) {
    const auto said = [](const FloatControls& controls) {
        return open([&](Traits& traits) { traits.float_controls = controls; })
            ->capabilities()
            .details.back();
    };
    const FloatControls all = {.denormals = true, .infinities = true, .rounding = true};
    const FloatControls some = {.denormals = false, .infinities = true, .rounding = false};
    EXPECT_EQ(said(all), "the CPU's bits in quantised types: yes");
    EXPECT_EQ(said(some),
              "the CPU's bits in quantised types: not promised: the driver has no control to keep "
              "denormals, rounding");
    for (const Capabilities& device : vulkan_capabilities())
        EXPECT_EQ(device.details.back().find("the CPU's bits in quantised types: "), 0u);
}

// Some drivers crash when they are asked for shapes, so listing must not ask.
TEST_F(Pretended, ListingDoesNotAskForMatrices) {
    for (const Capabilities& device : vulkan_capabilities())
        for (const std::string& line : device.details)
            EXPECT_EQ(line.find("cooperative matrices (f16"), std::string::npos) << line;
}

}  // namespace
}  // namespace aerie::vulkan
