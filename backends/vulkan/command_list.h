// One command buffer: dispatches and transfers in order, with a barrier only before a command that
// must wait for an earlier one. From the first dispatch on whose pipeline is still being compiled,
// commands are deferred until the list ends, so that further pipelines start to compile meanwhile.
#pragma once

#include <volk.h>

#include <functional>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "vulkan/hazards.h"
#include "vulkan/memory.h"
#include "vulkan/pipelines.h"
#include "vulkan/timer.h"

namespace aerie::vulkan {

struct Grid {
    uint32_t x = 1, y = 1, z = 1;
};

// A kernel with its tensors, parameters and grid. Binding i of the shader is bindings[i].
struct Dispatch {
    Kernel kernel;
    std::span<const Access> bindings;
    const void* params = nullptr;
    uint32_t params_bytes = 0;
    Grid grid;
    double work = 0;        // estimated multiply-adds
    double most_work = 0;   // an upper bound, where data on the device decide
    Grid base = {0, 0, 0};  // the first workgroup of the grid
};

class CommandList {
  public:
    CommandList(Device& device, Pipelines& pipelines, VkCommandPool pool,
                VkCommandBufferUsageFlags usage);
    ~CommandList();
    CommandList(const CommandList&) = delete;
    CommandList& operator=(const CommandList&) = delete;

    // Starts recording, ordered after everything that was submitted before. A list that has run is
    // emptied first.
    void begin();
    void end();
    bool open() const { return open_; }

    void dispatch(const Dispatch& dispatch);
    void update(const Tensor& to, const void* from);  // dense, whole words, at most 64 KiB
    void copy(const Tensor& to, const Tensor& from);  // both have the same type and shape
    void fill_zero(Memory& to);                       // all of it

    VkCommandBuffer handle() const { return handle_; }
    double work() const { return work_; }
    double most_work() const { return most_work_; }
    void add_times(OpTimes& times) const;  // once it has run
    const CommandCounts& counts() const { return counts_; }

  private:
    template <class Command>
    void give(Command command);  // runs now, or is deferred until the list ends
    void order(VkPipelineStageFlags stage, std::span<const Access> accesses);
    void barrier(VkPipelineStageFlags before, VkPipelineStageFlags after);
    VkDescriptorSet make_set(const Dispatch& dispatch, uint32_t* offsets);
    VkDescriptorSet allocate_set();
    VkDescriptorPool add_set_pool();

    Device& device_;
    Pipelines& pipelines_;
    VkCommandPool pool_;
    VkCommandBufferUsageFlags usage_;
    VkCommandBuffer handle_ = VK_NULL_HANDLE;
    std::vector<OwnedDescriptorPool> set_pools_;
    size_t set_pool_ = 0;  // index of the pool in use
    VkPipeline bound_ = VK_NULL_HANDLE;
    std::vector<std::function<void()>> waiting_;  // deferred commands, in order
    Hazards hazards_;
    VkPipelineStageFlags used_ = 0;     // stages of this list's commands
    VkPipelineStageFlags ordered_ = 0;  // stages that the last barrier holds back
    std::unique_ptr<Timer> timer_;      // set if the device is profiled
    bool open_ = false;
    double work_ = 0, most_work_ = 0;
    CommandCounts counts_;
};

}  // namespace aerie::vulkan
