// A matrix on the device: strips of 32 output rows, of which 4 words of each row lie together.
//
// A strip is a sequence of panels. F32, F16 and BF16: a panel is one 16-byte quad of each row (4 or
// 8 elements of k; beyond the row's end zeros). Q8_0 and Q4_0: a panel is one group of 32 elements,
// first its quads (2 or 1), quad by quad the 32 rows; then the 32 f16 scales.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "vulkan/queue.h"

namespace aerie::vulkan {

constexpr int kStripRows = 32;

// Sizes of a strip of some type.
struct StripLayout {
    int panel_elements;  // of k
    int panel_words;     // of 32 rows
    int panels;

    size_t strip_words() const { return size_t(panels) * size_t(panel_words); }
};
StripLayout strip_layout(DType type, int cols);

// Some strips of one type that one binding can hold. Of experts these are whole matrices, each with
// strips of its own, or some rows of one.
struct WeightPart {
    Tensor words;           // I32 [1, words of the part]
    WeightSegment segment;  // its rows among those of the weight; of experts those of the first
    int matrices = 1;
};

class VulkanWeight final : public Weight {
  public:
    // Throws Error.
    VulkanWeight(std::span<const WeightBlock> blocks, WeightUse use, Device& device,
                 const std::function<Buffer(size_t)>& allocate, Queue& queue);

    std::span<const WeightPart> parts() const { return parts_; }

  private:
    // Where a segment's rows come from, and to.
    struct Upload;
    void add_parts(Upload& upload);
    void add_part(Upload& upload, int first, int count, int matrices);

    std::vector<Buffer> memory_;
    std::vector<WeightPart> parts_;
};

}  // namespace aerie::vulkan
