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

CpuWeight::CpuWeight(std::span<const WeightBlock> source, DType as, WeightUse use,
                     const Kernels& kernels, Pool& pool, WeightArena& arena) {
    dtype = as;
    cols = source.front().cols;
    bool as_it_is = use == WeightUse::lookup && is_float(as);
    for (const WeightBlock& from : source) {
        assert(from.cols == cols);
        as_it_is = as_it_is && from.dtype == as;
        rows += from.rows;
    }
    if (as_it_is)
        copy_rows(source, arena);
    else
        pack_strips(source, kernels, pool, arena);
}

void CpuWeight::copy_rows(std::span<const WeightBlock> source, WeightArena& arena) {
    rows_ = arena.allocate(dense_bytes(dtype, rows, cols));
    std::byte* to = rows_.get();
    for (const WeightBlock& from : source) {
        const size_t bytes = dense_bytes(dtype, from.rows, cols);
        std::memcpy(to, from.data, bytes);
        to += bytes;
    }
}

void CpuWeight::pack_strips(std::span<const WeightBlock> source, const Kernels& kernels, Pool& pool,
                            WeightArena& arena) {
    const int strips = (rows + kStripRows - 1) / kStripRows;
    const size_t bytes = strip_bytes(dtype, cols);
    strips_ = arena.allocate(size_t(strips) * bytes);
    pool.run(strips, double(cols) * kStripRows, [&](int first, int last, int) {
        RowPacker packer(dtype, cols, kernels);
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
        kernels.convert(out, Float::F32, rows_.get() + dense_bytes(dtype, index, cols),
                        float_type(dtype), size_t(cols));
}

}  // namespace aerie::cpu
