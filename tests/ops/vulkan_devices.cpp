// The Vulkan device of the tests as it is, and as poorer or different devices would be.
#include "ops/device_test.h"
#include "vulkan/test_device.h"

namespace aerie {

namespace {

Device vulkan_device(const std::string& name, const vulkan::DeviceChoices& choices, unsigned step) {
    return {name,
            [choices]() -> std::unique_ptr<Backend> {
                if (!vulkan::has_test_device()) return nullptr;
                return vulkan::open_test_device(choices);
            },
            step};
}

// Only matmul's tests matter on it: other ops do not change with cooperative matrices.
Device cooperative_device() {
    vulkan::DeviceChoices choices;
    choices.cooperative_matrices = true;
    Device device = vulkan_device("vulkan_cooperative", choices, 21);
    device.open = [open = device.open]() -> std::unique_ptr<Backend> {
        const auto instance = vulkan::Instance::get();
        if (!instance || !vulkan::has_test_device()) return nullptr;
        vulkan::DeviceChoices forced;
        forced.cooperative_matrices = true;
        const vulkan::Matrices found =
            vulkan::Device(instance, vulkan::test_device_index(*instance), forced).matrices();
        return found.f16 || found.s8 ? open() : nullptr;
    };
    return device;
}

}  // namespace

std::vector<Device> vulkan_devices() {
    vulkan::DeviceChoices plain, split, discrete;
    split.split = 8;
    split.allow_integer_dot = false;
    discrete.allow_unified = false;
    discrete.submission_work = 1e5;                  // nearly every op runs in pieces
    discrete.pretend = [](vulkan::Traits& traits) {  // like phones and some vendors' drivers
        traits.storage_range = 128 << 20;
        traits.allocation_bytes = std::min(traits.allocation_bytes, size_t(64) << 20);
        traits.offset_alignment = 256;
    };
    return {vulkan_device("vulkan", plain, 5), vulkan_device("vulkan_split", split, 21),
            vulkan_device("vulkan_staged", discrete, 21), cooperative_device()};
}

}  // namespace aerie
