// Repacks rows into strips on the host and sends them piece by piece.
#include "vulkan/weight.h"

#include <algorithm>
#include <cassert>
#include <climits>
#include <cstring>

#include "backend/weight_rows.h"
#include "core/quant.h"

namespace aerie::vulkan {

namespace {

constexpr int kQuadBytes = 16;

// Where quad `quad` of a lane begins within a panel, in bytes.
size_t quad_place(int quad, int lane) {
    return size_t(quad * kStripRows + lane) * kQuadBytes;
}

void put_floats(std::byte* strip, int lane, const std::byte* row, size_t row_bytes) {
    for (size_t done = 0; done < row_bytes; done += kQuadBytes)
        std::memcpy(strip + done * kStripRows + size_t(lane) * kQuadBytes, row + done,
                    std::min<size_t>(kQuadBytes, row_bytes - done));
}

template <class Block>
void put_groups(std::byte* strip, int lane, const std::byte* row, const StripLayout& layout) {
    constexpr int kQuads = sizeof(Block::q) / kQuadBytes;
    for (int g = 0; g < layout.panels; ++g) {
        std::byte* panel = strip + size_t(g) * size_t(layout.panel_words) * 4;
        Block block;
        std::memcpy(&block, row + size_t(g) * sizeof(Block), sizeof(Block));
        for (int quad = 0; quad < kQuads; ++quad)
            std::memcpy(panel + quad_place(quad, lane), &block.q[quad * kQuadBytes], kQuadBytes);
        std::memcpy(panel + quad_place(kQuads, 0) + size_t(lane) * 2, &block.scale, 2);
    }
}

}  // namespace

StripLayout strip_layout(DType type, int cols) {
    const auto panels = [cols](int elements) { return (cols + elements - 1) / elements; };
    switch (type) {
        case DType::F32:
            return {4, kStripRows * 4, panels(4)};
        case DType::Q8_0:
            return {kGroup, kStripRows * 8 + kStripRows / 2, panels(kGroup)};
        case DType::Q4_0:
            return {kGroup, kStripRows * 4 + kStripRows / 2, panels(kGroup)};
        case DType::F16:
        case DType::BF16:
            return {8, kStripRows * 4, panels(8)};
        default:
            assert(!"no weight is stored in this type");
            return {};
    }
}

struct VulkanWeight::Upload {
    const WeightSegment& segment;
    WeightRows source;
    StripLayout layout;
    const std::function<Buffer(size_t)>& allocate;
    Queue& queue;
    int most_strips;  // of a part
};

VulkanWeight::VulkanWeight(std::span<const WeightBlock> blocks, WeightUse use, Device& device,
                           const std::function<Buffer(size_t)>& allocate, Queue& queue)
    : Weight(blocks, use) {
    const Traits& traits = device.traits();
    for (const WeightSegment& segment : segments) {
        const StripLayout layout = strip_layout(segment.dtype, cols);
        const size_t most_strips =
            std::min(traits.storage_range, traits.allocation_bytes) / (layout.strip_words() * 4);
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

// Rows [first, first + count) of the segment, and those that lie so in the next matrices.
void VulkanWeight::add_part(Upload& upload, int first, int count, int matrices) {
    const DType type = upload.segment.dtype;
    const size_t words = upload.layout.strip_words(), row_bytes = size_bytes(type, size_t(cols));
    const int strips_each = (count + kStripRows - 1) / kStripRows, strips = matrices * strips_each;
    memory_.push_back(upload.allocate(size_t(strips) * words * 4));
    const WeightPart part = {dense(memory_.back().get(), DType::I32, strips, int(words)),
                             {type, upload.segment.first_row + first, count},
                             matrices};
    std::vector<std::byte> strip(words * 4);
    for (int s = 0; s < strips; ++s) {
        const int done = s % strips_each * kStripRows;
        const int from = first + s / strips_each * matrix_rows + done;
        std::fill(strip.begin(), strip.end(), std::byte(0));
        for (int lane = 0; lane < std::min(kStripRows, count - done); ++lane) {
            const std::byte* row = upload.source.row(from + lane);
            if (type == DType::Q8_0)
                put_groups<BlockQ8_0>(strip.data(), lane, row, upload.layout);
            else if (type == DType::Q4_0)
                put_groups<BlockQ4_0>(strip.data(), lane, row, upload.layout);
            else
                put_floats(strip.data(), lane, row, row_bytes);
        }
        upload.queue.write(part.words.row_range(s, 1), strip.data());
    }
    parts_.push_back(part);
}

}  // namespace aerie::vulkan
