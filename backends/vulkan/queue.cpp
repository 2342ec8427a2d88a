// Batches form a ring: one is recorded while others run.
#include "vulkan/queue.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "vulkan/check.h"

namespace aerie::vulkan {

namespace {

// Desktops reset a device that does not answer for two seconds, and stutter long before: no
// submission shall take 250 ms. A submission is closed once it exceeds 0.1 s. The dispatch that
// closes it takes no longer than 0.1 s itself; a recording may take 0.2 s, and is then submitted
// alone. A single op can take longer: 64 rows times an LM head of 128k x 4096 are 3.4e10
// multiply-adds, and so is attention of 64 rows over 64k positions (32 heads of 128): half a second
// on an integrated GPU that does 6e10 a second. The grids of such ops are cut.
constexpr double kSubmissionSeconds = 0.1;
constexpr double kFirstWork = 2e8;  // limit before anything was timed
constexpr double kMinWork = kFirstWork / 16;
constexpr size_t kUpdateBytes = 65536;
constexpr size_t kStagingBytes = 16 << 20;
constexpr size_t kMaxRecordings = 256;  // beyond it shapes hardly recur
// The host polls at first, because a waiting thread is woken up to 50 us late, on Windows 100.
constexpr std::chrono::microseconds kPolling(200);
// Timeout of a wait. The driver itself reports a device that hangs; on a crowded machine work only
// takes long.
constexpr uint64_t kFenceNanoseconds = 300'000'000'000;

size_t row_bytes(const Tensor& t) {
    return size_bytes(t.dtype, size_t(t.cols));
}

// A view of `count` bytes of a tensor's memory from an offset on. It is of F16 because every type
// is a whole number of 16-bit units.
Tensor bytes_of(const Tensor& tensor, size_t offset_bytes, size_t count) {
    Tensor some = dense(tensor.memory, DType::F16, 1, int(count / 2));
    some.offset_bytes = offset_bytes;
    return some;
}

// Calls body(offset in the tensor's memory, offset in dense data, bytes) for pieces of at most
// `most` bytes: a dense matrix is one run, any other view is cut row by row.
template <class Body>
void for_each_piece(const Tensor& tensor, size_t most, const Body& body) {
    const bool whole = is_dense(tensor);
    const size_t run = whole ? size_t(tensor.rows) * row_bytes(tensor) : row_bytes(tensor);
    const size_t stride = size_bytes(tensor.dtype, size_t(tensor.row_stride));
    for (int r = 0; r < (whole ? 1 : tensor.rows); ++r)
        for (size_t done = 0; done < run; done += most)
            body(tensor.offset_bytes + size_t(r) * stride + done, size_t(r) * run + done,
                 std::min(most, run - done));
}

}  // namespace

// Only long batches say how fast the device is, and a single time may be measured badly. So the
// limit goes half of the way to the measured one, and at most doubles: it is never too high for
// long.
double learned_work(double known, double work, double seconds) {
    if (work <= known / 4 && seconds <= kSubmissionSeconds) return known;
    const double right = work / seconds * kSubmissionSeconds;
    return std::max(kMinWork, std::min((known + right) / 2, 2 * known));
}

Queue::Queue(std::shared_ptr<Device> device, std::span<const Shader> shaders)
    : device_(std::move(device)),
      pipelines_(device_, shaders),
      computes_here_(device_->traits().type == VK_PHYSICAL_DEVICE_TYPE_CPU),
      work_of_submission_(device_->submission_work() > 0 ? device_->submission_work()
                                                         : kFirstWork) {
    for (Batch& batch : batches_) {
        batch.pool = make_pool(VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT);
        batch.fence = make_fence();
        if (device_->traits().timestamp_bits == 0) continue;
        batch.stopwatch = std::make_unique<Stopwatch>(*device_, batch.pool);
        batch.stopwatch->record();
    }
    recording_pool_ = make_pool(0);
}

VulkanMemory& Queue::staging() {
    if (!staging_)
        staging_ = std::make_unique<VulkanMemory>(device_, nullptr, kStagingBytes, Place::staging);
    return *staging_;
}

Queue::~Queue() {
    device_->vk.vkDeviceWaitIdle(device_->handle);
}

OwnedCommandPool Queue::make_pool(VkCommandPoolCreateFlags flags) const {
    const VkCommandPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                          .pNext = nullptr,
                                          .flags = flags,
                                          .queueFamilyIndex = *device_->traits().queue_family};
    VkCommandPool pool;
    VK_CHECK(*device_, vkCreateCommandPool, device_->handle, &info, nullptr, &pool);
    return {*device_, pool};
}

OwnedFence Queue::make_fence() const {
    const VkFenceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO, .pNext = nullptr, .flags = 0};
    VkFence fence;
    VK_CHECK(*device_, vkCreateFence, device_->handle, &info, nullptr, &fence);
    return {*device_, fence};
}

template <class Work>
void Queue::guarded(const Work& work) {
    if (failure_) return;
    try {
        work();
    } catch (...) {
        failure_ = std::current_exception();
    }
}

CommandList& Queue::list() {
    if (recording_) return *recording_;
    Batch& batch = batches_[batch_];
    if (batch.used == batch.lists.size())
        batch.lists.push_back(std::make_unique<CommandList>(
            *device_, pipelines_, batch.pool, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT));
    CommandList& list = *batch.lists[batch.used];
    if (!list.open()) list.begin();
    return list;
}

// Ends the open list, if there is one, and appends it to its batch.
void Queue::close_list() {
    Batch& batch = batches_[batch_];
    if (batch.used == batch.lists.size() || !batch.lists[batch.used]->open()) return;
    CommandList& list = *batch.lists[batch.used++];
    list.end();
    batch.order.push_back(&list);
    batch.work += list.work();
    batch.most_work += list.most_work();
    count(list.counts());
}

void Queue::count(const CommandCounts& counts) {
    counts_.dispatches += counts.dispatches;
    counts_.barriers += counts.barriers;
}

void Queue::submit() {
    close_list();
    Batch& batch = batches_[batch_];
    if (batch.order.empty()) return;
    std::vector<VkCommandBuffer> handles;
    if (batch.stopwatch) handles.push_back(batch.stopwatch->start());
    for (const CommandList* list : batch.order) handles.push_back(list->handle());
    if (batch.stopwatch) handles.push_back(batch.stopwatch->stop());
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = nullptr,
                               .waitSemaphoreCount = 0,
                               .pWaitSemaphores = nullptr,
                               .pWaitDstStageMask = nullptr,
                               .commandBufferCount = uint32_t(handles.size()),
                               .pCommandBuffers = handles.data(),
                               .signalSemaphoreCount = 0,
                               .pSignalSemaphores = nullptr};
    VK_CHECK(*device_, vkQueueSubmit, device_->queue, 1, &info, batch.fence);
    batch.in_flight = true;
    batch.submitted = Clock::now();
    ++counts_.submissions;
    batch_ = (batch_ + 1) % kBatches;
    finish(batches_[batch_]);
}

// Waits for a batch, takes its times and empties it.
void Queue::finish(Batch& batch) {
    if (!batch.in_flight) return;
    const VkFence fence = batch.fence;
    const auto is_done = [&] {
        return device_->vk.vkGetFenceStatus(device_->handle, fence) == VK_SUCCESS;
    };
    const bool was_done = is_done();
    const Clock::time_point until = Clock::now() + kPolling;
    bool done = was_done;
    while (!done && !computes_here_ && Clock::now() < until) done = is_done();
    if (!done)
        VK_CHECK(*device_, vkWaitForFences, device_->handle, 1, &fence, VK_TRUE, kFenceNanoseconds);
    VK_CHECK(*device_, vkResetFences, device_->handle, 1, &fence);
    const double seconds = seconds_of(batch, was_done);
    if (device_->submission_work() == 0 && seconds > 0)
        work_of_submission_ = learned_work(work_of_submission_, batch.work, seconds);
    idle_since_ = Clock::now();
    for (const CommandList* list : batch.order) list->add_times(times_);
    batch.in_flight = false;
    batch.used = 0;
    batch.order.clear();
    batch.work = batch.most_work = 0;
}

// Seconds that the device worked on a batch; 0: unknown. Without timestamps the time is known only
// if the host saw the batch end: one that was done already (`was_done`) may have ended at any time.
double Queue::seconds_of(const Batch& batch, bool was_done) {
    if (batch.stopwatch) {
        const double seconds = batch.stopwatch->seconds();
        busy_seconds_ += seconds;
        return seconds;
    }
    const Clock::time_point begin = std::max(idle_since_, batch.submitted);
    return was_done ? 0 : std::chrono::duration<double>(Clock::now() - begin).count();
}

void Queue::finish_all() {
    submit();
    for (size_t i = 0; i < kBatches; ++i) finish(batches_[(batch_ + i) % kBatches]);
    staged_ = 0;
    pipelines_.save_when_quiet();
}

void Queue::dispatch(const Dispatch& dispatch) {
    guarded([&] {
        if (recording_)
            recording_->dispatch(dispatch);
        else
            dispatch_pieces(dispatch);
    });
}

// A dispatch that would take too long is cut along the longer side of its grid. A workgroup does
// the same whatever runs beside it, so this changes no bit.
void Queue::dispatch_pieces(const Dispatch& dispatch) {
    uint32_t Grid::*const side = dispatch.grid.x >= dispatch.grid.y ? &Grid::x : &Grid::y;
    const uint32_t whole = dispatch.grid.*side;
    for (uint32_t done = 0; done < whole;) {
        const double share = std::min(1.0, work_of_submission_ / dispatch.most_work);
        const uint32_t count = std::min(std::max(uint32_t(share * whole), 1u), whole - done);
        Dispatch piece = dispatch;
        piece.base.*side = done;
        piece.grid.*side = count;
        piece.work *= double(count) / whole;
        piece.most_work *= double(count) / whole;
        CommandList& commands = list();
        commands.dispatch(piece);
        done += count;
        if (takes_long(commands)) submit();
    }
}

// Whether the batch exceeds the limit together with this list.
bool Queue::takes_long(const CommandList& list) const {
    return batches_[batch_].most_work + list.most_work() > work_of_submission_;
}

void Queue::fill_zero(Memory& to) {
    guarded([&] { list().fill_zero(to); });
}

void Queue::write(const Tensor& to, const void* from) {
    assert(!recording_);  // a replay would write it again
    guarded([&] { write_now(to, from); });
}

bool Queue::idle() const {
    const Batch& batch = batches_[batch_];
    const bool open = batch.used < batch.lists.size() && batch.lists[batch.used]->open();
    return !open && batch.order.empty() &&
           std::none_of(batches_.begin(), batches_.end(),
                        [](const Batch& b) { return b.in_flight; });
}

void Queue::write_now(const Tensor& to, const void* from) {
    const std::byte* bytes = static_cast<const std::byte*>(from);
    if (std::byte* mapped = memory_of(to).mapped; mapped && idle()) {
        for (int r = 0; r < to.rows; ++r)
            std::memcpy(
                mapped + to.offset_bytes + size_t(r) * size_bytes(to.dtype, size_t(to.row_stride)),
                bytes + size_t(r) * row_bytes(to), row_bytes(to));
        return;
    }
    for_each_piece(to, device_->unified() ? kUpdateBytes : kStagingBytes,
                   [&](size_t at, size_t done, size_t count) {
                       write_piece(bytes_of(to, at, count), bytes + done);
                   });
}

// Small pieces of whole words are stored in the command buffer; others go through staging memory.
void Queue::write_piece(const Tensor& to, const std::byte* from) {
    const size_t count = row_bytes(to);
    if (count <= kUpdateBytes && count % 4 == 0 && to.offset_bytes % 4 == 0) {
        list().update(to, from);
        return;
    }
    const Tensor staged = bytes_of(dense(&staging(), DType::F16, 1, 0), stage(count), count);
    std::memcpy(staging().mapped + staged.offset_bytes, from, count);
    list().copy(to, staged);
}

// Reserves `count` bytes of staging memory until the next finish_all(); returns their offset.
size_t Queue::stage(size_t count) {
    if (staged_ + count > kStagingBytes) finish_all();
    const size_t place = staged_;
    staged_ += (count + 255) / 256 * 256;
    return place;
}

void Queue::read(const Tensor& from, void* to) {
    assert(!recording_);
    guarded([&] { read_now(from, to); });
    if (failure_) std::rethrow_exception(failure_);
}

void Queue::read_now(const Tensor& from, void* to) {
    const size_t bytes = row_bytes(from), stride = size_bytes(from.dtype, size_t(from.row_stride));
    std::byte* out = static_cast<std::byte*>(to);
    counts_.bytes_read += size_t(from.rows) * bytes;
    if (const std::byte* mapped = memory_of(from).mapped; mapped && memory_of(from).cached) {
        finish_all();
        for (int r = 0; r < from.rows; ++r)
            std::memcpy(out + size_t(r) * bytes, mapped + from.offset_bytes + size_t(r) * stride,
                        bytes);
        return;
    }
    if (bytes > kStagingBytes) {  // not even one row fits into staging memory
        for_each_piece(from, kStagingBytes, [&](size_t at, size_t done, size_t count) {
            read_piece(bytes_of(from, at, count), out + done);
        });
        return;
    }
    for (int first = 0, rows; first < from.rows; first += rows) {
        rows = std::min(from.rows - first, int(kStagingBytes / std::max<size_t>(bytes, 1)));
        read_piece(from.row_range(first, rows), out + size_t(first) * bytes);
    }
}

// Reads rows that fit into staging memory together, after all pending work.
void Queue::read_piece(const Tensor& from, std::byte* to) {
    const size_t count = size_t(from.rows) * row_bytes(from), place = stage(count);
    Tensor staged = dense(&staging(), from.dtype, from.rows, from.cols);
    staged.offset_bytes = place;
    list().copy(staged, from);
    finish_all();
    std::memcpy(to, staging().mapped + place, count);
}

void Queue::wait() {
    guarded([&] { finish_all(); });
    if (failure_) std::rethrow_exception(failure_);
}

void Queue::replay(uint64_t key, const std::function<void()>& record) {
    assert(!recording_);
    std::exception_ptr of_caller, of_device;
    const auto make = [&] {
        try {
            record();
        } catch (...) {
            of_caller = std::current_exception();
            of_device = failure_;
            throw;
        }
    };
    guarded([&] { replay_now(key, make); });
    if (!of_caller) return;
    failure_ = of_device;
    std::rethrow_exception(of_caller);
}

void Queue::replay_now(uint64_t key, const std::function<void()>& make) {
    if (recordings_.size() == kMaxRecordings && !recordings_.count(key)) {
        finish_all();
        recordings_.clear();
    }
    std::unique_ptr<CommandList>& recording = recordings_[key];
    if (!recording) {
        recording = record(make);
        ++counts_.recordings;
    }
    // By what is known now, this is too much for one submission: its ops are run one by one
    // instead, so that they can be cut.
    if (recording->most_work() > 2 * work_of_submission_) return make();
    close_list();
    if (takes_long(*recording)) submit();
    Batch& batch = batches_[batch_];
    batch.order.push_back(recording.get());
    batch.work += recording->work();
    batch.most_work += recording->most_work();
    count(recording->counts());
    if (batch.most_work > work_of_submission_) submit();
}

std::unique_ptr<CommandList> Queue::record(const std::function<void()>& make) {
    auto list = std::make_unique<CommandList>(*device_, pipelines_, recording_pool_,
                                              VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
    recording_ = list.get();
    try {
        recording_->begin();
        make();
        recording_->end();
    } catch (...) {
        recording_ = nullptr;
        throw;
    }
    recording_ = nullptr;
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return list;
}

void Queue::forget_memory() {
    guarded([&] { finish_all(); });
    if (failure_) device_->vk.vkDeviceWaitIdle(device_->handle);
    // Any recording may use the memory, and memory is seldom freed.
    recordings_.clear();
}

}  // namespace aerie::vulkan
