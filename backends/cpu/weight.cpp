// Uploading weights: into strips by all threads, or as they are.
#include "cpu/weight.h"

#include <algorithm>
#include <cassert>
#include <cstring>

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
    bool as_stored = use == WeightUse::lookup && is_float(as);
    for (const WeightBlock& from : source) {
        assert(from.cols == cols);
        as_stored = as_stored && from.dtype == as;
        rows += from.rows;
    }
    if (as_stored)
        copy_rows(source, arena);
    else
        pack_strips(source, kernels, pool, arena);
}

void CpuWeight::copy_rows(std::span<const WeightBlock> source, WeightArena& arena) {
    const size_t row_bytes = size_bytes(dtype, size_t(cols));
    stored_ = arena.allocate(size_t(rows) * row_bytes);
    std::byte* to = stored_.get();
    for (const WeightBlock& from : source) {
        std::memcpy(to, from.data, size_t(from.rows) * row_bytes);
        to += size_t(from.rows) * row_bytes;
    }
}

void CpuWeight::pack_strips(std::span<const WeightBlock> source, const Kernels& kernels, Pool& pool,
                            WeightArena& arena) {
    const DType as = dtype;
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

void CpuWeight::read_row(float* out, int index, const Kernels& kernels) const {
    assert(index >= 0 && index < rows);
    if (strips_)
        unpack_row(out, strip(index / kStripRows), dtype, index % kStripRows, cols);
    else
        kernels.convert(out, Float::F32,
                        stored_.get() + size_t(index) * size_bytes(dtype, size_t(cols)),
                        float_type(dtype), size_t(cols));
}

}  // namespace aerie::cpu
