// Timestamps around the dispatches of one command list.
#pragma once

#include <volk.h>

#include <map>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "vulkan/owned.h"

namespace aerie::vulkan {

using OpTimes = std::map<std::string, OpTime>;

class Timer {
  public:
    explicit Timer(Device& device);

    // In this order while a list is recorded; beyond its capacity nothing is timed.
    void reset(VkCommandBuffer commands);
    void start(VkCommandBuffer commands);
    void stop(VkCommandBuffer commands, const char* op);
    // Once the list has run.
    void add_to(OpTimes& times) const;

  private:
    static constexpr uint32_t kMostOps = 2048;

    Device& device_;
    OwnedQueryPool pool_;
    std::vector<const char*> ops_;
};

}  // namespace aerie::vulkan
