// Opening, memory, scratch and transfers of the CPU backend. The ops are in ops.cpp and ops/; their
// inner loops are in this folder, one file per op.
#include "cpu/backend.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/float_environment.h"
#include "core/platform.h"
#include "core/poison.h"
#include "core/quant.h"
#include "cpu/cpu_backend.h"

namespace aerie {
namespace cpu {

namespace {

Capabilities describe(Isa isa, int threads, const std::string& device = "cpu") {
    Capabilities caps;
    caps.name = device;
    caps.description = platform::processor_name() + " (" + name(isa) + "), " +
                       std::to_string(threads) + (threads == 1 ? " thread" : " threads");
    caps.memory_bytes = platform::memory_bytes();
    caps.threads = threads;
    return caps;
}

struct ScratchLayout {
    std::vector<Scratch> threads;
    std::byte *packed, *quantised, *gathered;
    float* chunks;
    size_t bytes;
    std::vector<std::pair<size_t, size_t>> gaps;  // between the parts: offset and bytes
};

// Lays out all scratch in one piece of memory. With null only the size is of use.
ScratchLayout lay_out_scratch(std::byte* memory, const Limits& limits, int threads) {
    ScratchLayout layout;
    std::byte* end = memory;
    const auto take = [&]<class T>(T*& to, size_t count) {
        to = reinterpret_cast<T*>(end);
        const size_t bytes = count * sizeof(T), taken = (bytes + 63) / 64 * 64 + kGuardBytes;
        layout.gaps.push_back({size_t(end - memory) + bytes, taken - bytes});
        end += taken;
    };
    const size_t vocab = size_t(limits.vocab), widest = size_t(limits.widest);
    for (int i = 0; i < threads; ++i) {
        Scratch scratch;
        take(scratch.logits, vocab);
        take(scratch.masses, vocab);
        take(scratch.ids, vocab);
        take(scratch.order, vocab);
        take(scratch.row, widest);
        layout.threads.push_back(scratch);
    }
    const size_t columns = size_t(packed_columns(limits));
    take(layout.packed, (columns + kPackedStep) * (widest / kGroup + 1) * kPackedGroupBytes);
    take(layout.quantised, columns * (widest / kGroup) * sizeof(BlockI8G32));
    take(layout.gathered, limits.places > 0 ? columns * widest * sizeof(float) : 0);
    take(layout.chunks, chunk_floats(limits));
    layout.bytes = size_t(end - memory);
    return layout;
}

}  // namespace

size_t chunk_floats(const Limits& limits) {
    constexpr int kRows = 4;  // at the full context; more rows of a shorter one
    const int chunks = (limits.context + kChunk - 1) / kChunk;
    return ChunkResults::size(chunks, std::min(limits.rows, kRows) * limits.heads, limits.head_dim);
}

int packed_columns(const Limits& limits) {
    return std::min(std::max(limits.rows, limits.places * kPackedStep), kMaxColumns);
}

CpuBackend::CpuBackend(Isa isa, int threads, const std::string& device)
    : kernels_(kernels(isa)), pool_(threads), capabilities_(describe(isa, threads, device)) {
    do_reserve({});
}

Buffer CpuBackend::allocate(size_t size_bytes) {
    return std::make_unique<CpuMemory>(size_bytes);
}

std::unique_ptr<Weight> CpuBackend::upload_weight(std::span<const WeightBlock> blocks,
                                                  WeightUse use) {
    FloatEnvironment environment;
    return std::make_unique<CpuWeight>(blocks, use, kernels_, pool_, arena_);
}

size_t CpuBackend::scratch_bytes(const Limits& limits) const {
    return lay_out_scratch(nullptr, limits, pool_.threads()).bytes;
}

void CpuBackend::do_reserve(const Limits& limits) {
    scratch_memory_ = allocate(scratch_bytes(limits));
    std::byte* memory = static_cast<CpuMemory&>(*scratch_memory_).data();
    ScratchLayout layout = lay_out_scratch(memory, limits, pool_.threads());
    for (const auto& [offset, bytes] : layout.gaps) scratch_memory_->poison(offset, bytes);
    scratch_ = std::move(layout.threads);
    packed_ = layout.packed;
    quantised_ = dense(scratch_memory_.get(), DType::I8G32, 0, 0);
    quantised_.offset_bytes = size_t(layout.quantised - memory);
    gathered_ = dense(scratch_memory_.get(), DType::F32, 0, 0);
    gathered_.offset_bytes = size_t(layout.gathered - memory);
    chunks_ = layout.chunks;
}

void CpuBackend::write(Tensor to, const void* from) {
    const size_t bytes = size_bytes(to.dtype, size_t(to.cols));
    for (int r = 0; r < to.rows; ++r)
        std::memcpy(row<std::byte>(to, r), static_cast<const std::byte*>(from) + size_t(r) * bytes,
                    bytes);
}

void CpuBackend::read(Tensor from, void* to) {
    const size_t bytes = size_bytes(from.dtype, size_t(from.cols));
    for (int r = 0; r < from.rows; ++r)
        std::memcpy(static_cast<std::byte*>(to) + size_t(r) * bytes, row<std::byte>(from, r),
                    bytes);
}

}  // namespace cpu

Capabilities cpu_capabilities(int threads) {
    return cpu::describe(cpu::choose_isa(), threads > 0 ? threads : cpu::default_threads());
}

std::unique_ptr<Backend> open_cpu(int threads) {
    return std::make_unique<cpu::CpuBackend>(cpu::choose_isa(),
                                             threads > 0 ? threads : cpu::default_threads());
}

std::unique_ptr<Backend> open_cpu_device(const std::string& device, int threads) {
    const cpu::Isa isa = cpu::find_isa(device.substr(device.find(':') + 1), device);
    return std::make_unique<cpu::CpuBackend>(isa, threads > 0 ? threads : cpu::default_threads(),
                                             device);
}

}  // namespace aerie
