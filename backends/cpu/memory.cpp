// Buffers of the CPU backend.
#include "cpu/memory.h"

#include <cassert>
#include <cstdlib>
#include <limits>
#include <string>

#include "core/error.h"
#include "core/platform.h"
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
    if (!block_)
        throw Error("cpu: out of memory (" + std::to_string(size) + " bytes wanted)",
                    Cause::device_memory);
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
    const platform::Pages pages = platform::map_pages(bytes);
    if (!pages.data)
        throw Error("cpu: out of memory (" + std::to_string(bytes) + " bytes wanted)",
                    Cause::device_memory);
    return {pages.data, [pages](std::byte*) {
                unpoison(pages.base, pages.mapped_bytes);
                platform::unmap_pages(pages);
            }};
}

}  // namespace aerie::cpu
