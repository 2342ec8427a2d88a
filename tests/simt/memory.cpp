// Memory of the stand-in GPUs. Every buffer has pages of its own: an access beyond its end is a
// segmentation fault and, if the buffer is of usual size, so is any access by the host's code.
#include <sys/mman.h>

#include <cstdlib>
#include <map>

#include "simt/machine.h"
#include "simt/stores.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace simt {

namespace {

constexpr size_t kPage = 4096, kAlignment = 256;  // as cudaMalloc promises
constexpr size_t kGuarded = 128 << 10;            // larger ones take too long to open and close

struct Pages {
    std::byte* begin;
    size_t bytes;  // without the page after it, which nobody may touch
    int gpu;
};

std::map<void*, Pages>& buffers() {  // by the address that cudaMalloc returned
    static std::map<void*, Pages> all;
    return all;
}

void protect(std::byte* begin, size_t bytes, int protection) {
    if (mprotect(begin, bytes, protection) != 0) std::abort();
}

void guard(int gpu, int protection) {
    for (const auto& [data, pages] : buffers())
        if (pages.gpu == gpu && pages.bytes <= kGuarded)
            protect(pages.begin, pages.bytes, protection);
}

size_t rounded_up(size_t bytes, size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

// Marks the bytes between a buffer's end and its aligned end for AddressSanitizer, or takes the
// marks away, since other memory may come to the same pages.
void mark([[maybe_unused]] std::byte* end, [[maybe_unused]] size_t bytes,
          [[maybe_unused]] bool forbidden) {
#ifdef __SANITIZE_ADDRESS__
    forbidden ? __asan_poison_memory_region(end, bytes) : __asan_unpoison_memory_region(end, bytes);
#endif
}

int nested = 0, open_gpu = 0;

}  // namespace

OnGpu::OnGpu(int gpu) : gpu_(gpu) {
    if (gpu_ != open_gpu) stores::settle();  // a kernel has no producers on another GPU
    if (nested++ == 0) guard(gpu_, PROT_READ | PROT_WRITE);
    open_gpu = gpu_;
}

OnGpu::~OnGpu() {
    if (--nested == 0) guard(gpu_, PROT_NONE);
}

}  // namespace simt

using namespace simt;

// The memory is not zeroed, as on a GPU; its end is as near as possible to a page that nobody may
// touch.
cudaError_t cudaMalloc(void** memory, size_t bytes) {
    if (captures()) {
        forbid_in_capture();
        return failed(cudaErrorStreamCaptureUnsupported);
    }
    if (state_of(current_gpu()) != cudaSuccess) return state_of(current_gpu());
    size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    *memory = nullptr;
    if (bytes > total) return failed(cudaErrorMemoryAllocation);
    const size_t used = rounded_up(bytes, kAlignment), all = rounded_up(used, kPage);
    void* begin = mmap(nullptr, all + kPage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return failed(cudaErrorMemoryAllocation);
    const Pages pages{static_cast<std::byte*>(begin), all, current_gpu()};
    std::byte* data = pages.begin + (all - used);
    std::memset(data, 0xa5, used);
    mark(data + bytes, used - bytes, true);
    if (all <= kGuarded) protect(pages.begin, all, PROT_NONE);
    protect(pages.begin + all, kPage, PROT_NONE);
    buffers()[data] = pages;
    *memory = data;
    ++live().buffers;
    return cudaSuccess;
}

// A real cudaFree of another GPU's memory works, but makes that GPU ready for use, which takes
// hundreds of megabytes.
cudaError_t cudaFree(void* memory) {
    const auto found = buffers().find(memory);
    if (!memory) return cudaSuccess;
    if (found == buffers().end() || found->second.gpu != current_gpu())
        return failed(cudaErrorInvalidValue);
    run_everything(current_gpu());
    stores::settle();
    const Pages pages = found->second;
    buffers().erase(found);
    mark(pages.begin, pages.bytes, false);
    munmap(pages.begin, pages.bytes + kPage);
    --live().buffers;
    return state_of(current_gpu());
}

cudaError_t cudaHostAlloc(void** memory, size_t bytes, unsigned) {
    *memory = std::malloc(bytes);
    std::memset(*memory, 0xa5, bytes);
    ++live().pinned;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
    std::free(memory);
    --live().pinned;
    return cudaSuccess;
}

cudaError_t cudaHostGetDevicePointer(void** mapped, void* memory, unsigned) {
    *mapped = memory;
    return cudaSuccess;
}

namespace simt {

namespace {

// The pages that an address is in, or null.
const Pages* pages_of(const void* memory) {
    auto after = buffers().upper_bound(const_cast<void*>(memory));
    if (after == buffers().begin()) return nullptr;
    const Pages& pages = std::prev(after)->second;
    return static_cast<const std::byte*>(memory) < pages.begin + pages.bytes ? &pages : nullptr;
}

}  // namespace

bool is_device_memory(const void* memory) {
    return pages_of(memory) != nullptr;
}

bool is_open_memory(const void* at) {
    const Pages* pages = pages_of(at);
    return nested > 0 && pages && pages->gpu == open_gpu;
}

void for_each_open_buffer(const std::function<void(std::byte* begin, size_t bytes)>& what) {
    for (const auto& [data, pages] : buffers())
        if (nested > 0 && pages.gpu == open_gpu) what(pages.begin, pages.bytes);
}

}  // namespace simt
