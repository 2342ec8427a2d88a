// Decides which commands must wait, by the accesses since the last barrier.
#pragma once

#include <cstddef>
#include <vector>

#include "core/tensor.h"

namespace aerie::vulkan {

// A tensor that a command reads or writes.
struct Access {
    Tensor tensor;
    bool writes = false;
};

inline Access reads(const Tensor& tensor) {
    return {tensor, false};
}
inline Access writes(const Tensor& tensor) {
    return {tensor, true};
}
// Stands in for an operand that a call leaves out, because every binding of a shader must be bound.
inline Access reads_or(const Tensor& tensor, const Tensor& other) {
    return reads(tensor ? tensor : other);
}

// A view of a whole allocation, and perhaps of a little beyond it. It has several rows because an
// int counts columns.
inline Tensor whole(Memory& memory) {
    constexpr int kColumns = 1 << 20;
    return dense(&memory, DType::I32, int(memory.size_bytes / (4 * size_t(kColumns))) + 1,
                 kColumns);
}

// Bytes from the first byte of a view to the end of its last row.
size_t extent_bytes(const Tensor& t);

// Whether two views share a byte. Views of the same rows but of disjoint columns do not.
bool overlap(const Tensor& a, const Tensor& b);

class Hazards {
  public:
    // Whether a command with this access must wait for an earlier one since the last barrier,
    // because one of the two writes what the other accesses.
    bool conflicts(const Access& access) const;
    void add(const Access& access) { since_barrier_.push_back(access); }
    void barrier() { since_barrier_.clear(); }

  private:
    std::vector<Access> since_barrier_;
};

}  // namespace aerie::vulkan
