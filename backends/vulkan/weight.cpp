// Repacks rows into strips on the host and sends them piece by piece.
#include "vulkan/weight.h"

#include <algorithm>
#include <cassert>
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
};

VulkanWeight::VulkanWeight(std::span<const WeightBlock> blocks, Device& device,
                           const std::function<Buffer(size_t)>& allocate, Queue& queue)
    : Weight(blocks) {
    const Traits& traits = device.traits();
    for (const WeightSegment& segment : segments) {
        Upload upload = {segment, WeightRows(blocks_of(blocks, segment)),
                         strip_layout(segment.dtype, cols), allocate, queue};
        const size_t strip_bytes = upload.layout.strip_words() * 4;
        const int most_strips = int(std::max<size_t>(
            1, std::min(traits.storage_range, traits.allocation_bytes) / strip_bytes));
        for (int first = 0; first < segment.rows; first += most_strips * kStripRows)
            add_part(upload, first, std::min(segment.rows - first, most_strips * kStripRows));
    }
}

// Rows [first, first + count) of the segment.
void VulkanWeight::add_part(Upload& upload, int first, int count) {
    const DType type = upload.segment.dtype;
    const size_t words = upload.layout.strip_words(), row_bytes = size_bytes(type, size_t(cols));
    const int strips = (count + kStripRows - 1) / kStripRows;
    memory_.push_back(upload.allocate(size_t(strips) * words * 4));
    const WeightPart part = {dense(memory_.back().get(), DType::I32, strips, int(words)),
                             {type, upload.segment.first_row + first, count}};
    std::vector<std::byte> strip(words * 4);
    for (int s = 0; s < strips; ++s) {
        std::fill(strip.begin(), strip.end(), std::byte(0));
        for (int lane = 0; lane < std::min(kStripRows, count - s * kStripRows); ++lane) {
            const std::byte* row = upload.source.row(first + s * kStripRows + lane);
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
