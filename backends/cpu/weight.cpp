// Uploading weights: into strips by all threads, or as they are.
#include "cpu/weight.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/poison.h"
#include "cpu/memory.h"
#include "cpu/strips.h"

namespace aerie::cpu {

std::shared_ptr<std::byte> WeightArena::allocate(size_t bytes) {
    constexpr size_t kAlignment = 64, kBlockBytes = size_t(32) << 20;
    const size_t wanted = bytes;
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment + kGuardBytes;
    if (bytes > size_ - used_) {
        size_ = std::max(bytes, kBlockBytes);
        used_ = 0;
        block_ = allocate_pages(size_);
    }
    const std::shared_ptr<std::byte> place(block_, block_.get() + used_);
    poison(place.get() + wanted, bytes - wanted);
    used_ += bytes;
    return place;
}

CpuSegment::CpuSegment(const WeightSegment& segment, std::span<const WeightBlock> blocks,
                       WeightUse use, const Kernels& kernels, Pool& pool, WeightArena& arena)
    : place_(segment), cols_(blocks.front().cols) {
    bool is_kept = true;
    for (const WeightBlock& from : blocks) is_kept = is_kept && from.dtype == dtype();
    assert(is_kept || lies_in_strips(dtype()));
    if (!lies_in_strips(dtype()) || (is_kept && use == WeightUse::lookup && is_float(dtype())))
        copy_rows(blocks, arena);
    else
        pack_strips(blocks, kernels, pool, arena);
}

void CpuSegment::copy_rows(std::span<const WeightBlock> blocks, WeightArena& arena) {
    rows_ = arena.allocate(dense_bytes(dtype(), rows(), cols_));
    std::byte* to = rows_.get();
    for (const WeightBlock& from : blocks) {
        const size_t bytes = dense_bytes(dtype(), from.rows, cols_);
        std::memcpy(to, from.data, bytes);
        to += bytes;
    }
}

void CpuSegment::pack_strips(std::span<const WeightBlock> blocks, const Kernels& kernels,
                             Pool& pool, WeightArena& arena) {
    const int strips = (rows() + kStripRows - 1) / kStripRows;
    const size_t bytes = strip_bytes(dtype(), cols_);
    strips_ = arena.allocate(size_t(strips) * bytes);
    pool.run(strips, double(cols_) * kStripRows, [&](int first, int last, int) {
        RowPacker packer(dtype(), cols_, kernels);
        const WeightBlock* from = blocks.data();
        int from_row = first * kStripRows;  // within `from`
        for (int r = from_row; r < std::min(last * kStripRows, rows()); ++r, ++from_row) {
            for (; from_row >= from->rows; ++from) from_row -= from->rows;
            packer.pack(strips_.get() + size_t(r / kStripRows) * bytes, r % kStripRows, *from,
                        from_row);
        }
    });
}

const std::byte* CpuSegment::strip(int index) const {
    assert(strips_);
    return strips_.get() + size_t(index) * strip_bytes(dtype(), cols_);
}

const std::byte* CpuSegment::row(int index) const {
    assert(rows_ && index >= 0 && index < rows());
    return rows_.get() + dense_bytes(dtype(), index, cols_);
}

void CpuSegment::read_row(float* out, int index, const Kernels& kernels) const {
    assert(index >= 0 && index < rows());
    if (strips_)
        unpack_row(out, strip(index / kStripRows), dtype(), index % kStripRows, cols_);
    else if (is_quantised(dtype()))
        unpack(out, row(index), dtype(), cols_);
    else
        kernels.convert(out, Float::F32, row(index), float_type(dtype()), size_t(cols_));
}

CpuWeight::CpuWeight(std::span<const WeightBlock> blocks, WeightUse use, const Kernels& kernels,
                     Pool& pool, WeightArena& arena)
    : Weight(blocks) {
    for (const WeightSegment& segment : segments)
        parts_.emplace_back(segment, blocks_of(blocks, segment), use, kernels, pool, arena);
}

void CpuWeight::read_row(float* out, int index, const Kernels& kernels) const {
    const CpuSegment* part = parts_.data();
    for (; index >= part->place().first_row + part->rows(); ++part) {
    }
    part->read_row(out, index - part->place().first_row, kernels);
}

}  // namespace aerie::cpu
