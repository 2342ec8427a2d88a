// Compute pipelines by shader and specialisation, compiled in the background, and their cache on
// disk. All share one layout: kMaxBindings storage buffers and kPushBytes of push constants.
#pragma once

#include <volk.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "vulkan/owned.h"
#include "vulkan/shaders.h"

namespace aerie::vulkan {

constexpr uint32_t kMaxBindings = 10, kPushBytes = 128, kMaxConstants = 10;

// A shader with its specialisation constants 0, 1, ... in order.
struct Kernel {
    const char* shader;
    std::array<uint32_t, kMaxConstants> constants = {};
    uint32_t subgroup = 0;  // required subgroup size; 0: any

    bool operator<(const Kernel& other) const {
        const int order = std::string_view(shader).compare(other.shader);
        return order ? order < 0
                     : std::tie(constants, subgroup) < std::tie(other.constants, other.subgroup);
    }
};

// A counting semaphore. The std::counting_semaphore of GCC 12 may sleep forever (GCC PR 104928).
class Places {
  public:
    explicit Places(unsigned count) : free_(count) {}

    void take() {
        std::unique_lock lock(guard_);
        freed_.wait(lock, [this] { return free_ > 0; });
        --free_;
    }
    void give() {
        {
            const std::lock_guard lock(guard_);
            ++free_;
        }
        freed_.notify_one();
    }

  private:
    std::mutex guard_;
    std::condition_variable freed_;
    unsigned free_;
};

class Pipelines {
  public:
    Pipelines(std::shared_ptr<Device> device, std::span<const Shader> shaders);
    ~Pipelines();
    Pipelines(const Pipelines&) = delete;
    Pipelines& operator=(const Pipelines&) = delete;

    // Null while the pipeline is being compiled, which the first call starts. Throws Error.
    VkPipeline find(const Kernel& kernel);
    // Waits for a pipeline that find() started to compile. Throws Error.
    VkPipeline wait_for(const Kernel& kernel);
    VkPipelineLayout layout() const { return layout_; }
    VkDescriptorSetLayout set_layout() const { return set_layout_; }
    bool cached() const { return cached_; }
    // Writes all pipelines to the cache on disk; failure is no error.
    void save();
    // Does the same once nothing has been compiled for a while, so that the cache survives a
    // process that ends badly later. Called whenever the queue is empty.
    void save_when_quiet();

  private:
    using Compiling = std::shared_future<OwnedPipeline>;

    void create_layout();
    VkShaderModule module_of(const char* shader);
    OwnedPipeline compile(const Kernel& kernel, VkShaderModule module);

    std::shared_ptr<Device> device_;
    std::span<const Shader> shaders_;
    OwnedSetLayout set_layout_;
    OwnedPipelineLayout layout_;
    OwnedPipelineCache cache_;
    std::string cache_path_;                       // empty: none
    bool cached_ = false;                          // the file existed
    size_t saved_ = 0;                             // pipelines that the file has
    std::chrono::steady_clock::time_point asked_;  // when a pipeline was last compiled
    std::map<std::string, OwnedModule> modules_;
    Places threads_;                    // limits the threads that compile
    std::atomic<size_t> compiled_ = 0;  // pipelines that were compiled, or failed
    std::map<Kernel, Compiling> pipelines_;
};

}  // namespace aerie::vulkan
