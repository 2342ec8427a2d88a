// Uploads weights: all threads pack them into strips, or copy them as they are.
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
    : place_(segment),
      cols_(blocks.front().cols),
      matrix_rows_(use == WeightUse::experts ? blocks.front().rows : segment.rows) {
    bool is_kept = is_float(dtype());
    for (const WeightBlock& from : blocks) is_kept = is_kept && from.dtype == dtype();
    if (is_kept && use == WeightUse::lookup)
        copy_rows(blocks, pool, arena);
    else
        pack_strips(blocks, kernels, pool, arena);
}

void CpuSegment::copy_rows(std::span<const WeightBlock> blocks, Pool& pool, WeightArena& arena) {
    rows_ = arena.allocate(dense_bytes(dtype(), rows(), cols_));
    std::byte* to = rows_.get();
    for (const WeightBlock& from : blocks) {
        pool.run(from.rows, double(cols_), [&](int first, int last, int) {
            from.copy(first, last - first, to + dense_bytes(dtype(), first, cols_));
        });
        to += dense_bytes(dtype(), from.rows, cols_);
    }
}

void CpuSegment::pack_strips(std::span<const WeightBlock> blocks, const Kernels& kernels,
                             Pool& pool, WeightArena& arena) {
    const int strips_each = (matrix_rows_ + kStripRows - 1) / kStripRows;
    const int strips = rows() / matrix_rows_ * strips_each;
    const size_t bytes = strip_bytes(dtype(), cols_);
    strips_ = arena.allocate(size_t(strips) * bytes);
    pool.run(strips, double(cols_) * kStripRows, [&](int first, int last, int) {
        RowPacker packer(dtype(), cols_, kernels);
        std::vector<std::byte> room;
        for (int s = first; s < last; ++s) {
            const int in_matrix = s % strips_each * kStripRows;
            const WeightBlock* from = blocks.data();
            int row = s / strips_each * matrix_rows_ + in_matrix;  // row within `from`
            const int lanes = std::min(kStripRows, matrix_rows_ - in_matrix);
            for (int lane = 0, count = 0; lane < lanes; row += count) {
                for (; row >= from->rows; ++from) row -= from->rows;
                count = std::min(lanes - lane, from->rows - row);
                const std::byte* data = from->read(row, count, room);
                for (int i = 0; i < count; ++i, ++lane, data += from->row_bytes())
                    packer.pack(strips_.get() + size_t(s) * bytes, lane, data, from->dtype);
            }
        }
    });
}

const std::byte* CpuMatrix::strip(int index) const {
    return data + size_t(index) * strip_bytes(dtype, cols);
}

CpuMatrix CpuSegment::matrix(int index) const {
    assert(index >= 0 && (index + 1) * matrix_rows_ <= rows());
    const int strips = (matrix_rows_ + kStripRows - 1) / kStripRows;
    const size_t bytes = size_t(strips) * strip_bytes(dtype(), cols_);
    return {dtype(), matrix_rows_, cols_, strips_.get() + size_t(index) * bytes};
}

void CpuSegment::read_row(float* out, int index, const Kernels& kernels) const {
    assert(index >= 0 && index < rows() && matrix_rows_ == rows());
    if (strips_)
        unpack_row(out, matrix().strip(index / kStripRows), dtype(), index % kStripRows, cols_);
    else
        kernels.convert(out, Float::F32, rows_.get() + dense_bytes(dtype(), index, cols_),
                        float_type(dtype()), size_t(cols_));
}

CpuWeight::CpuWeight(std::span<const WeightBlock> blocks, WeightUse use, const Kernels& kernels,
                     Pool& pool, WeightArena& arena)
    : Weight(blocks, use) {
    for (const WeightSegment& segment : segments)
        parts_.emplace_back(segment, blocks_of(blocks, segment), use, kernels, pool, arena);
}

CpuMatrix CpuWeight::block(int index) const {
    const ExpertBlock place = find_block(*this, index);
    return parts_[place.segment].matrix(place.index);
}

void CpuWeight::read_row(float* out, int index, const Kernels& kernels) const {
    const CpuSegment* part = parts_.data();
    for (; index >= part->place().first_row + part->rows(); ++part) {
    }
    part->read_row(out, index - part->place().first_row, kernels);
}

}  // namespace aerie::cpu
