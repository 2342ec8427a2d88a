// Buffers and weights of the CPU backend.
#include "cpu/memory.h"

#include <cassert>
#include <cstdlib>
#include <limits>
#include <string>

#include "core/error.h"

namespace aerie::cpu {

Float float_type(DType type) {
    assert(is_float(type));
    return type == DType::F32 ? Float::F32 : type == DType::F16 ? Float::F16 : Float::BF16;
}

CpuMemory::CpuMemory(size_t size) {
    constexpr size_t kAlignment = 64;
    // calloc takes large blocks from the system, which hands out zero pages when they are touched.
    if (size <= std::numeric_limits<size_t>::max() - kAlignment)
        block_ = std::calloc(size + kAlignment, 1);
    if (!block_) throw Error("cpu: out of memory (" + std::to_string(size) + " bytes wanted)");
    const uintptr_t address = reinterpret_cast<uintptr_t>(block_);
    data_ = static_cast<std::byte*>(block_) + (kAlignment - address % kAlignment) % kAlignment;
    size_bytes = size;
}

CpuMemory::~CpuMemory() {
    std::free(block_);
}

CpuWeight::CpuWeight(std::span<const WeightBlock> source, DType as, const Kernels& kernels,
                     Pool& pool) {
    dtype = as;
    cols = source.front().cols;
    const size_t row_bytes = size_t(cols) * aerie::size_bytes(as);
    for (const WeightBlock& from : source) {
        assert(from.cols == cols && is_float(from.dtype));
        const std::byte* data = static_cast<const std::byte*>(from.data);
        if (from.dtype != as) {
            auto memory = std::make_unique<CpuMemory>(size_t(from.rows) * row_bytes);
            const size_t from_bytes = size_t(cols) * aerie::size_bytes(from.dtype);
            pool.run(from.rows, cols, [&](int first, int last, int) {
                kernels.convert(memory->data() + size_t(first) * row_bytes, float_type(as),
                                data + size_t(first) * from_bytes, float_type(from.dtype),
                                size_t(last - first) * size_t(cols));
            });
            data = memory->data();
            converted_.push_back(std::move(memory));
        }
        blocks_.push_back({data, rows, from.rows});
        rows += from.rows;
    }
}

const std::byte* CpuWeight::row(int index) const {
    assert(index >= 0 && index < rows);
    const Block* block = blocks_.data();
    while (index >= block->first_row + block->rows) ++block;
    return block->data + size_t(index - block->first_row) * size_t(cols) * aerie::size_bytes(dtype);
}

}  // namespace aerie::cpu
