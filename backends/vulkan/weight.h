// A matrix on the device, in strips (panels.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "vulkan/panels.h"
#include "vulkan/queue.h"

namespace aerie::vulkan {

// Strips of one type that fit into one binding. A part of experts has whole matrices, each with
// strips of its own, or some rows of one matrix.
struct WeightPart {
    Tensor words;           // I32 [1, words of the part]
    WeightSegment segment;  // its rows in the weight; for experts, the rows of its first matrix
    int matrices = 1;
};

class VulkanWeight final : public Weight {
  public:
    // Throws Error.
    VulkanWeight(std::span<const WeightBlock> blocks, WeightUse use, Device& device,
                 const std::function<Buffer(size_t)>& allocate, Queue& queue);

    std::span<const WeightPart> parts() const { return parts_; }

  private:
    // The upload of one segment: where its rows come from and where they go.
    struct Upload;
    void add_parts(Upload& upload);
    void add_part(Upload& upload, int first, int count, int matrices);

    std::vector<Buffer> memory_;
    std::vector<WeightPart> parts_;
};

}  // namespace aerie::vulkan
