#include "vulkan/training/device.h"

#include <algorithm>
#include <bit>

#include "backend/training_checks.h"
#include "core/error.h"
#include "vulkan/shaders.h"
#include "vulkan/training/vulkan_training.h"

namespace aerie::vulkan {

VulkanTraining::VulkanTraining(std::shared_ptr<Device> device)
    : device_(std::move(device)), queue_(std::make_shared<Queue>(device_, training_shaders())) {}

Matrix VulkanTraining::allocate(int rows, int cols) {
    const size_t bytes = dense_bytes(DType::F32, rows, cols);
    auto memory = std::make_shared<VulkanMemory>(device_, queue_, bytes, Place::device);
    if (memory->mapped)
        std::fill_n(memory->mapped, bytes, std::byte(0));
    else
        queue_->fill_zero(*memory);
    return {std::move(memory), 0, rows, cols, cols};
}

void VulkanTraining::write(const Matrix& to, std::span<const float> dense) {
    check_copied(to, dense.size());
    queue_->write(tensor_of(to), dense.data());
}

void VulkanTraining::write(const Matrix& to, std::span<const double> dense) {
    const std::vector<float> rounded(dense.begin(), dense.end());
    write(to, std::span<const float>(rounded));
}

void VulkanTraining::read(const Matrix& from, std::span<double> dense) {
    check_copied(from, dense.size());
    std::vector<float> found(dense.size());
    queue_->read(tensor_of(from), found.data());
    std::ranges::copy(found, dense.begin());
}

Tensor VulkanTraining::upload(std::span<const int> numbers) {
    const Tensor to = scratch(numbers_, DType::I32, 1, int(numbers.size()));
    queue_->write(to, numbers.data());
    return to;
}

Tensor VulkanTraining::results(int rows, int cols) {
    return scratch(results_, DType::F32, rows, cols);
}

// Old memory goes once the queue no longer uses it.
Tensor VulkanTraining::scratch(Buffer& memory, DType type, int rows, int cols) {
    const size_t bytes = dense_bytes(type, rows, cols);
    if (!memory || memory->size_bytes < bytes)
        memory =
            std::make_unique<VulkanMemory>(device_, queue_, std::bit_ceil(bytes), Place::device);
    return dense(memory.get(), type, rows, cols);
}

std::vector<float> VulkanTraining::read_all(const Tensor& dense) {
    std::vector<float> found(size_t(dense.rows) * size_t(dense.cols));
    queue_->read(dense, found.data());
    return found;
}

std::unique_ptr<TrainingDevice> open_training(const std::string& device,
                                              const DeviceChoices& choices) {
    std::string why;
    const auto instance = Instance::get(&why);
    if (!instance) throw Error(device + ": " + why);
    const size_t index = find_device(*instance, device);
    return std::make_unique<VulkanTraining>(std::make_shared<Device>(instance, index, choices));
}

}  // namespace aerie::vulkan
