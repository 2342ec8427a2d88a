// Repacks rows into strips on the host and sends them piece by piece.
#include "vulkan/weight.h"

#include <algorithm>
#include <climits>

#include "backend/weight_rows.h"

namespace aerie::vulkan {

struct VulkanWeight::Upload {
    const WeightSegment& segment;
    WeightRows source;
    StripLayout layout;
    const std::function<Buffer(size_t)>& allocate;
    Queue& queue;
    int most_strips;  // strips per part
};

VulkanWeight::VulkanWeight(std::span<const WeightBlock> blocks, WeightUse use, Device& device,
                           const std::function<Buffer(size_t)>& allocate, Queue& queue)
    : Weight(blocks, use) {
    const Traits& traits = device.traits();
    for (const WeightSegment& segment : segments) {
        const StripLayout layout = strip_layout(segment.dtype, cols);
        const size_t most_strips =
            std::min(traits.storage_range, traits.allocation_bytes) / layout.strip_bytes();
        Upload upload = {segment, WeightRows(blocks_of(blocks, segment)),
                         layout,  allocate,
                         queue,   int(std::clamp<size_t>(most_strips, 1, INT_MAX / kStripRows))};
        add_parts(upload);
    }
}

void VulkanWeight::add_parts(Upload& upload) {
    const int rows = upload.segment.rows, each = matrix_rows > 0 ? matrix_rows : rows;
    const int strips = (each + kStripRows - 1) / kStripRows, count = rows / each;
    const int together = std::min(upload.most_strips / strips, count),
              most_rows = upload.most_strips * kStripRows;
    if (together > 0)
        for (int i = 0; i < count; i += together)
            add_part(upload, i * each, each, std::min(together, count - i));
    else
        for (int first = 0; first < rows; first += each)
            for (int done = 0; done < each; done += most_rows)
                add_part(upload, first + done, std::min(each - done, most_rows), 1);
}

// Uploads rows [first, first + count) of the segment, and the same rows of the matrices that
// follow.
void VulkanWeight::add_part(Upload& upload, int first, int count, int matrices) {
    const DType type = upload.segment.dtype;
    const size_t bytes = upload.layout.strip_bytes();
    const int strips_each = (count + kStripRows - 1) / kStripRows, strips = matrices * strips_each;
    memory_.push_back(upload.allocate(size_t(strips) * bytes));
    const WeightPart part = {dense(memory_.back().get(), DType::I32, strips, int(bytes / 4)),
                             {type, upload.segment.first_row + first, count},
                             matrices};
    std::vector<std::byte> strip(bytes);
    for (int s = 0; s < strips; ++s) {
        const int done = s % strips_each * kStripRows;
        const int from = first + s / strips_each * matrix_rows + done;
        std::fill(strip.begin(), strip.end(), std::byte(0));
        for (int lane = 0; lane < std::min(kStripRows, count - done); ++lane)
            put_row(strip.data(), lane, upload.source.row(from + lane), type, cols);
        upload.queue.write(part.words.row_range(s, 1), strip.data());
    }
    parts_.push_back(part);
}

}  // namespace aerie::vulkan
