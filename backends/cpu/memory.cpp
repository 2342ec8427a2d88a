// Buffers of the CPU backend.
#include "cpu/memory.h"

#include <sys/mman.h>

#include <cassert>
#include <cstdlib>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/poison.h"

namespace aerie::cpu {

Float float_type(DType type) {
    assert(is_float(type));
    return type == DType::F32 ? Float::F32 : type == DType::F16 ? Float::F16 : Float::BF16;
}

CpuMemory::CpuMemory(size_t size) {
    constexpr size_t kAlignment = 64;
    // calloc takes large blocks from the system, which hands out zero pages when they are touched.
    if (size <= std::numeric_limits<size_t>::max() - kAlignment)
        block_ = std::calloc(size + kAlignment, 1);
    if (!block_) throw Error("cpu: out of memory (" + std::to_string(size) + " bytes wanted)");
    const uintptr_t address = reinterpret_cast<uintptr_t>(block_);
    data_ = static_cast<std::byte*>(block_) + (kAlignment - address % kAlignment) % kAlignment;
    size_bytes = size;
}

CpuMemory::~CpuMemory() {
    unpoison(data_, size_bytes);
    std::free(block_);
}

void CpuMemory::poison(size_t offset, size_t bytes) {
    aerie::poison(data_ + offset, bytes);
}

std::shared_ptr<std::byte> allocate_pages(size_t bytes) {
    constexpr size_t kHugePage = size_t(2) << 20;
    const size_t mapped = bytes + kHugePage;
    void* base =
        ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        throw Error("cpu: out of memory (" + std::to_string(bytes) + " bytes wanted)");
    const size_t skip = (kHugePage - reinterpret_cast<uintptr_t>(base) % kHugePage) % kHugePage;
    std::byte* data = static_cast<std::byte*>(base) + skip;
#ifdef MADV_HUGEPAGE
    ::madvise(data, bytes, MADV_HUGEPAGE);
#endif
    return {data, [base, mapped](std::byte*) {
                unpoison(base, mapped);
                ::munmap(base, mapped);
            }};
}

}  // namespace aerie::cpu
