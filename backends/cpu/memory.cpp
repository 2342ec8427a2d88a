// Buffers and weights of the CPU backend.
#include "cpu/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>

#include "core/error.h"
#include "cpu/strips.h"

namespace aerie::cpu {

Float float_type(DType type) {
    assert(is_float(type));
    return type == DType::F32 ? Float::F32 : type == DType::F16 ? Float::F16 : Float::BF16;
}

namespace {

// Zeroed memory from the system, in huge pages where it has them.
std::shared_ptr<std::byte> allocate_pages(size_t bytes) {
    constexpr size_t kHugePage = size_t(2) << 20;
    const size_t mapped = bytes + kHugePage;
    void* base =
        ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        throw Error("cpu: out of memory (" + std::to_string(bytes) + " bytes wanted)");
    const size_t skip = (kHugePage - reinterpret_cast<uintptr_t>(base) % kHugePage) % kHugePage;
    std::byte* data = static_cast<std::byte*>(base) + skip;
#ifdef MADV_HUGEPAGE
    ::madvise(data, bytes, MADV_HUGEPAGE);
#endif
    return {data, [base, mapped](std::byte*) { ::munmap(base, mapped); }};
}

// Row `index` of a block as f32.
void read_floats(std::vector<float>& to, const WeightBlock& from, int index,
                 const Kernels& kernels) {
    const size_t cols = to.size();
    const std::byte* data = static_cast<const std::byte*>(from.data) +
                            size_t(index) * aerie::size_bytes(from.dtype, cols);
    const auto unpack_blocks = [&](const auto* blocks) {
        for (size_t g = 0; g < cols / kGroup; ++g) unpack(to.data() + g * kGroup, blocks[g]);
    };
    if (from.dtype == DType::Q8_0)
        unpack_blocks(reinterpret_cast<const BlockQ8_0*>(data));
    else if (from.dtype == DType::Q4_0)
        unpack_blocks(reinterpret_cast<const BlockQ4_0*>(data));
    else
        kernels.convert(to.data(), Float::F32, data, float_type(from.dtype), cols);
}

// Brings rows of any type into strips of one.
class RowPacker {
  public:
    RowPacker(DType as, int cols, const Kernels& kernels)
        : as_(as), values_(static_cast<size_t>(cols)), kernels_(kernels) {}

    void pack(std::byte* strip, int lane, const WeightBlock& from, int index) {
        if (as_ == DType::Q8_0)
            pack_as(q8_, strip, lane, from, index, pack_q8_0);
        else
            pack_as(q4_, strip, lane, from, index, pack_q4_0);
    }

  private:
    template <class Block>
    void pack_as(std::vector<Block>& blocks, std::byte* strip, int lane, const WeightBlock& from,
                 int index, Block (*pack_group)(const float*)) {
        blocks.resize(values_.size() / kGroup);
        if (from.dtype == as_) {
            const size_t row_bytes = blocks.size() * sizeof(Block);
            std::memcpy(blocks.data(),
                        static_cast<const std::byte*>(from.data) + size_t(index) * row_bytes,
                        row_bytes);
        } else {
            read_floats(values_, from, index, kernels_);
            for (size_t g = 0; g < blocks.size(); ++g)
                blocks[g] = pack_group(values_.data() + g * kGroup);
        }
        put_row(strip, lane, blocks.data(), int(blocks.size()));
    }

    DType as_;
    std::vector<float> values_;
    std::vector<BlockQ8_0> q8_;
    std::vector<BlockQ4_0> q4_;
    const Kernels& kernels_;
};

}  // namespace

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

CpuWeight::CpuWeight(std::span<const WeightBlock> source, DType as, const Kernels& kernels,
                     Pool& pool, WeightArena& arena) {
    dtype = as;
    cols = source.front().cols;
    for (const WeightBlock& from : source) {
        assert(from.cols == cols);
        if (!is_quantised(as)) store_floats(from, kernels, pool, arena);
        rows += from.rows;
    }
    if (is_quantised(as)) store_strips(source, kernels, pool, arena);
}

// Rows below those that are there already.
void CpuWeight::store_floats(const WeightBlock& from, const Kernels& kernels, Pool& pool,
                             WeightArena& arena) {
    const std::byte* data = static_cast<const std::byte*>(from.data);
    if (from.dtype != dtype) {
        const size_t row_bytes = aerie::size_bytes(dtype, size_t(cols));
        kept_.push_back(arena.allocate(size_t(from.rows) * row_bytes));
        std::byte* to = kept_.back().get();
        pool.run(from.rows, cols, [&](int first, int last, int) {
            std::vector<float> values(static_cast<size_t>(cols));
            for (int r = first; r < last; ++r) {
                read_floats(values, from, r, kernels);
                kernels.convert(to + size_t(r) * row_bytes, float_type(dtype), values.data(),
                                Float::F32, size_t(cols));
            }
        });
        data = to;
    }
    blocks_.push_back({data, rows, from.rows});
}

void CpuWeight::store_strips(std::span<const WeightBlock> source, const Kernels& kernels,
                             Pool& pool, WeightArena& arena) {
    const Quant type = quant_type(dtype);
    const int strips = (rows + kStripRows - 1) / kStripRows;
    kept_.push_back(arena.allocate(size_t(strips) * strip_bytes(type, cols)));
    std::byte* to = kept_.back().get();
    pool.run(strips, double(cols) * kStripRows, [&](int first, int last, int) {
        RowPacker packer(dtype, cols, kernels);
        const int end = std::min(last * kStripRows, rows);
        const WeightBlock* from = source.data();
        int from_row = first * kStripRows;  // within `from`
        for (int r = from_row; r < end; ++r, ++from_row) {
            for (; from_row >= from->rows; ++from) from_row -= from->rows;
            packer.pack(to + size_t(r / kStripRows) * strip_bytes(type, cols), r % kStripRows,
                        *from, from_row);
        }
    });
}

const std::byte* CpuWeight::row(int index) const {
    assert(index >= 0 && index < rows && !is_quantised(dtype));
    const Block* block = blocks_.data();
    while (index >= block->first_row + block->rows) ++block;
    return block->data + size_t(index - block->first_row) * aerie::size_bytes(dtype, size_t(cols));
}

const std::byte* CpuWeight::strip(int index) const {
    return kept_.front().get() + size_t(index) * strip_bytes(quant_type(dtype), cols);
}

void CpuWeight::read_row(float* out, int index, const Kernels& kernels) const {
    if (is_quantised(dtype))
        unpack_row(out, strip(index / kStripRows), quant_type(dtype), index % kStripRows,
                   cols / kGroup);
    else
        kernels.convert(out, Float::F32, row(index), float_type(dtype), size_t(cols));
}

}  // namespace aerie::cpu
