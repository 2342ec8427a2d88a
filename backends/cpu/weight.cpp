// Uploading weights: into strips by all threads, or not at all.
#include "cpu/weight.h"

#include <algorithm>
#include <cassert>

#include "cpu/memory.h"
#include "cpu/strips.h"

namespace aerie::cpu {

std::shared_ptr<std::byte> WeightArena::allocate(size_t bytes) {
    constexpr size_t kAlignment = 64, kBlockBytes = size_t(32) << 20;
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > size_ - used_) {
        size_ = std::max(bytes, kBlockBytes);
        used_ = 0;
        block_ = allocate_pages(size_);
    }
    const std::shared_ptr<std::byte> place(block_, block_.get() + used_);
    used_ += bytes;
    return place;
}

CpuWeight::CpuWeight(std::span<const WeightBlock> source, DType as, WeightUse use,
                     const Kernels& kernels, Pool& pool, WeightArena& arena) {
    dtype = as;
    cols = source.front().cols;
    bool stay = use == WeightUse::lookup && is_float(as);
    for (const WeightBlock& from : source) {
        assert(from.cols == cols);
        stay = stay && from.dtype == as;
        stored_.push_back({static_cast<const std::byte*>(from.data), rows, from.rows});
        rows += from.rows;
    }
    if (stay) return;
    stored_.clear();
    const int strips = (rows + kStripRows - 1) / kStripRows;
    const size_t bytes = strip_bytes(as, cols);
    strips_ = arena.allocate(size_t(strips) * bytes);
    pool.run(strips, double(cols) * kStripRows, [&](int first, int last, int) {
        RowPacker packer(as, cols, kernels);
        const WeightBlock* from = source.data();
        int from_row = first * kStripRows;  // within `from`
        for (int r = from_row; r < std::min(last * kStripRows, rows); ++r, ++from_row) {
            for (; from_row >= from->rows; ++from) from_row -= from->rows;
            packer.pack(strips_.get() + size_t(r / kStripRows) * bytes, r % kStripRows, *from,
                        from_row);
        }
    });
}

const std::byte* CpuWeight::strip(int index) const {
    assert(strips_);
    return strips_.get() + size_t(index) * strip_bytes(dtype, cols);
}

const std::byte* CpuWeight::stored_row(int index) const {
    const Block* block = stored_.data();
    while (index >= block->first_row + block->rows) ++block;
    return block->data + size_t(index - block->first_row) * size_bytes(dtype, size_t(cols));
}

void CpuWeight::read_row(float* out, int index, const Kernels& kernels) const {
    assert(index >= 0 && index < rows);
    if (strips_)
        unpack_row(out, strip(index / kStripRows), dtype, index % kStripRows, cols);
    else
        kernels.convert(out, Float::F32, stored_row(index), float_type(dtype), size_t(cols));
}

}  // namespace aerie::cpu
