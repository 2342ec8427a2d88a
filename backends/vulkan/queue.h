// The in-order queue of a device: records what is asked for, submits it when the host wants a
// result or when enough has come together, and replays recorded passes.
//
// A failure is kept and thrown by the next read or sync; until then nothing more is recorded.
#pragma once

#include <volk.h>

#include <array>
#include <chrono>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "vulkan/command_list.h"

namespace aerie::vulkan {

// The new limit of work (multiply-adds) per submission, after one of `work` took `seconds`; `known`
// is the limit so far.
double learned_work(double known, double work, double seconds);

class Queue {
  public:
    // Dispatches name their kernels among these shaders.
    explicit Queue(std::shared_ptr<Device> device, std::span<const Shader> shaders = all_shaders());
    ~Queue();
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    void dispatch(const Dispatch& dispatch);
    void fill_zero(Memory& to);  // all of it
    void write(const Tensor& to, const void* from);
    void read(const Tensor& from, void* to);  // waits
    void wait();                              // until all work is done
    // An exception of `record` is passed on to the caller, and the recording is discarded; the
    // queue has not failed.
    void replay(uint64_t key, const std::function<void()>& record);

    // Called before memory is freed: finishes all work and discards all recordings, so that nothing
    // uses the memory afterwards.
    void forget_memory();

    const Pipelines& pipelines() const { return pipelines_; }
    CommandCounts counts() const { return counts_; }
    const OpTimes& times() const { return times_; }
    // Seconds that the device has worked, by its own clock; 0 without one.
    double busy_seconds() const { return busy_seconds_; }
    double submission_work() const {
        return work_of_submission_;
    }  // limit per submission, as
       // learned so far

  private:
    using Clock = std::chrono::steady_clock;

    // Command lists that are submitted together.
    struct Batch {
        OwnedCommandPool pool;
        std::vector<std::unique_ptr<CommandList>> lists;
        size_t used = 0;  // lists in use
        std::vector<const CommandList*> order;
        double work = 0, most_work = 0;
        OwnedFence fence;
        std::unique_ptr<Stopwatch> stopwatch;  // null without timestamps
        Clock::time_point submitted;
        bool in_flight = false;
    };

    template <class Work>
    void guarded(const Work& work);
    OwnedCommandPool make_pool(VkCommandPoolCreateFlags flags) const;
    OwnedFence make_fence() const;
    CommandList& list();  // the list that is being recorded
    void close_list();
    void dispatch_pieces(const Dispatch& dispatch);
    bool takes_long(const CommandList& list) const;
    void submit();
    bool idle() const;
    void finish(Batch& batch);
    double seconds_of(const Batch& batch, bool was_done);
    VulkanMemory& staging();
    size_t stage(size_t count);
    void finish_all();
    void write_now(const Tensor& to, const void* from);
    void read_now(const Tensor& from, void* to);
    void write_piece(const Tensor& to, const std::byte* from);
    void read_piece(const Tensor& from, std::byte* to);
    void replay_now(uint64_t key, const std::function<void()>& make);
    std::unique_ptr<CommandList> record(const std::function<void()>& make);
    void count(const CommandCounts& counts);

    static constexpr size_t kBatches = 3;

    std::shared_ptr<Device> device_;
    Pipelines pipelines_;
    std::array<Batch, kBatches> batches_;
    size_t batch_ = 0;
    std::unique_ptr<VulkanMemory> staging_;  // made when first needed
    size_t staged_ = 0;                      // bytes of staging memory in use
    OwnedCommandPool recording_pool_;
    std::map<uint64_t, std::unique_ptr<CommandList>> recordings_;
    CommandList* recording_ = nullptr;
    std::exception_ptr failure_;
    CommandCounts counts_;
    OpTimes times_;
    bool computes_here_;         // the device is the host's CPU, of which polling would take a part
    double work_of_submission_;  // work that takes kSubmissionSeconds, as learned so far
    double busy_seconds_ = 0;
    Clock::time_point idle_since_ = Clock::now();
};

}  // namespace aerie::vulkan
