// Which commands must wait for which: what was touched since the last barrier.
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
// What a call leaves out has some other tensor, since all that a shader names must be bound.
inline Access reads_or(const Tensor& tensor, const Tensor& other) {
    return reads(tensor ? tensor : other);
}

// All of an allocation, and perhaps a little beyond: in rows, since an int counts columns.
inline Tensor whole(Memory& memory) {
    constexpr int kColumns = 1 << 20;
    return dense(&memory, DType::I32, int(memory.size_bytes / (4 * size_t(kColumns))) + 1,
                 kColumns);
}

// Bytes from the first of a view to its last.
size_t extent_bytes(const Tensor& t);

// Whether two views share a byte. Views of the same rows that take other columns do not.
bool overlap(const Tensor& a, const Tensor& b);

class Hazards {
  public:
    // Whether a command with this access must wait for one since the last barrier: one of the two
    // writes what the other touches.
    bool conflicts(const Access& access) const;
    void add(const Access& access) { since_barrier_.push_back(access); }
    void barrier() { since_barrier_.clear(); }

  private:
    std::vector<Access> since_barrier_;
};

}  // namespace aerie::vulkan
