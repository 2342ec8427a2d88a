// Timestamps around the dispatches of one command list, and around a submission.
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

    // Called in this order while a list is recorded. Dispatches beyond kMaxOps are not timed.
    void reset(VkCommandBuffer commands);
    void start(VkCommandBuffer commands);
    void stop(VkCommandBuffer commands, const char* op);
    // Adds the times of the list, once it has run.
    void add_to(OpTimes& times) const;

  private:
    static constexpr uint32_t kMaxOps = 2048;

    Device& device_;
    OwnedQueryPool pool_;
    std::vector<const char*> ops_;
};

// Two command buffers with a timestamp each, submitted before and after a batch.
class Stopwatch {
  public:
    Stopwatch(Device& device, VkCommandPool pool);
    ~Stopwatch();
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

    void record();  // once
    VkCommandBuffer start() const { return handles_[0]; }
    VkCommandBuffer stop() const { return handles_[1]; }
    double seconds() const;  // once both have run

  private:
    Device& device_;
    VkCommandPool pool_;
    OwnedQueryPool queries_;
    VkCommandBuffer handles_[2] = {};
};

}  // namespace aerie::vulkan
