// Overlap of strided views.
#include "vulkan/hazards.h"

#include <algorithm>

namespace aerie::vulkan {

namespace {

struct Span {
    size_t begin, end, stride, width;  // in bytes

    explicit Span(const Tensor& t)
        : begin(t.offset_bytes),
          stride(size_bytes(t.dtype, size_t(t.row_stride))),
          width(size_bytes(t.dtype, size_t(t.cols))) {
        end = begin + extent_bytes(t);
    }
};

}  // namespace

size_t extent_bytes(const Tensor& t) {
    if (t.rows == 0) return 0;
    return size_t(t.rows - 1) * size_bytes(t.dtype, size_t(t.row_stride)) +
           size_bytes(t.dtype, size_t(t.cols));
}

bool overlap(const Tensor& a, const Tensor& b) {
    if (a.memory != b.memory || a.rows == 0 || b.rows == 0) return false;
    const Span x(a), y(b);
    if (x.end <= y.begin || y.end <= x.begin) return false;
    if (x.stride != y.stride || x.stride == 0) return true;
    // With equal strides, the columns of both repeat at the same distance. `behind` is how far y's
    // columns begin behind x's; the views are disjoint if y's columns fit between x's.
    const size_t behind = (y.begin % y.stride + x.stride - x.begin % x.stride) % x.stride;
    return behind < x.width || behind + y.width > x.stride;
}

bool Hazards::conflicts(const Access& access) const {
    return std::any_of(since_barrier_.begin(), since_barrier_.end(), [&](const Access& earlier) {
        return (access.writes || earlier.writes) && overlap(access.tensor, earlier.tensor);
    });
}

}  // namespace aerie::vulkan
