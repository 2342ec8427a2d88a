// Host memory as the CPU backend hands it out.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "cpu/kernels.h"

namespace aerie::cpu {

Float float_type(DType type);  // asserts that `type` is a float type

// A zeroed block, 64-byte aligned; pages that are never touched cost nothing.
class CpuMemory final : public Memory {
  public:
    explicit CpuMemory(size_t size);  // throws Error
    ~CpuMemory() override;
    CpuMemory(const CpuMemory&) = delete;
    CpuMemory& operator=(const CpuMemory&) = delete;

    void poison(size_t offset, size_t bytes) override;
    std::byte* data() const { return data_; }

  private:
    void* block_ = nullptr;
    std::byte* data_ = nullptr;
};

// Zeroed memory from the system, in huge pages where it has them. Throws Error.
std::shared_ptr<std::byte> allocate_pages(size_t bytes);

template <class T>
T* row(const Tensor& t, int index) {
    std::byte* data = static_cast<CpuMemory*>(t.memory)->data() + t.offset_bytes;
    return reinterpret_cast<T*>(data + size_t(index) * size_bytes(t.dtype, size_t(t.row_stride)));
}

inline float* row_f32(const Tensor& t, int index) {
    return row<float>(t, index);
}

}  // namespace aerie::cpu
