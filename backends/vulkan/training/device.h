// Trains on a Vulkan device, in f32.
#pragma once

#include <memory>
#include <string>

#include "backend/training.h"
#include "vulkan/device.h"

namespace aerie::vulkan {

// `device` is "vulkan:1", or "vulkan:" and a part of a device's name or its UUID. Throws Error.
//
// Operations are submitted once enough of them have come together, or when a result is wanted: a
// device that failed says so then, by an Error. It also does if an operation works on more than one
// binding of the device holds.
std::unique_ptr<TrainingDevice> open_training(const std::string& device,
                                              const DeviceChoices& choices = {});

}  // namespace aerie::vulkan
