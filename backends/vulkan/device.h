// One opened device: its functions, its queue and its traits.
#pragma once

#include <volk.h>

#include <functional>
#include <memory>
#include <optional>

#include "vulkan/abilities.h"
#include "vulkan/instance.h"

namespace aerie::vulkan {

// Options of a device, most of them for tests; the defaults are for users.
struct DeviceChoices {
    bool allow_integer_dot = true;
    // Whether matrices are used where the device and the build have them; empty: as uses_matrices()
    // says.
    std::optional<bool> cooperative_matrices;
    bool allow_unified = true;   // false: host data goes through staging buffers everywhere
    int split = 0;               // invocations that share a row of a matmul; 0: by kind of device
    double submission_work = 0;  // most multiply-adds of a submission; 0: those of 0.1 s
    std::string cache;           // folder where compiled pipelines are kept; empty: nowhere
    bool profile = false;        // time each dispatch; they then run one by one
    double quiet_seconds = 1;    // time without compiling until the cache is written
    std::function<void(Traits&)> pretend;                 // changes the traits, to pretend another
                                                          // device
    std::function<void(VolkDeviceTable&)> patch;          // may replace functions
    std::function<void(const std::string&)> on_progress;  // called while pipelines compile
};

class Device : public Abilities {
  public:
    // Throws Error.
    Device(std::shared_ptr<Instance> instance, size_t index, const DeviceChoices& choices);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    const std::string& name() const { return name_; }  // "vulkan:0"
    bool unified() const { return unified_; }
    double submission_work() const { return submission_work_; }
    bool profile() const { return profile_; }
    const std::string& cache() const { return cache_; }
    double quiet_seconds() const { return quiet_seconds_; }
    void say(const std::string& what) const {
        if (on_progress_) on_progress_(what);
    }
    // Seconds between two timestamps of the queue.
    double seconds_between(uint64_t begin, uint64_t end) const;

    VkDevice handle = VK_NULL_HANDLE;
    VkQueue queue = VK_NULL_HANDLE;
    VolkDeviceTable vk = {};

  private:
    void create();

    std::shared_ptr<Instance> instance_;
    VkPhysicalDevice physical_;
    std::string name_;
    bool unified_;
    std::string cache_;
    double quiet_seconds_;
    std::function<void(const std::string&)> on_progress_;
    double submission_work_;
    bool profile_;
};

}  // namespace aerie::vulkan
