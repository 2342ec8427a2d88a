// Life of the CPU backend: opening, memory, scratch, transfers. The ops are in ops.cpp, choice.cpp
// and beam.cpp; their inner loops in one file an op.
#include "cpu/backend.h"

#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "cpu/cpu_backend.h"
#include "cpu/float_environment.h"

namespace aerie {
namespace cpu {

namespace {

std::string processor_name() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "CPU";
}

Capabilities describe(Isa isa, int threads) {
    Capabilities caps;
    caps.name = "cpu";
    caps.description = processor_name() + " (" + name(isa) + "), " + std::to_string(threads) +
                       (threads == 1 ? " thread" : " threads");
    caps.memory_bytes = size_t(sysconf(_SC_PHYS_PAGES)) * size_t(sysconf(_SC_PAGESIZE));
    caps.maps_files = true;
    return caps;
}

size_t round_up(size_t bytes) {
    return (bytes + 63) / 64 * 64;
}

}  // namespace

CpuBackend::CpuBackend(Isa isa, int threads)
    : kernels_(kernels(isa)), pool_(threads), capabilities_(describe(isa, threads)) {
    reserve({});
}

Buffer CpuBackend::allocate(size_t size_bytes) {
    return std::make_unique<CpuMemory>(size_bytes);
}

std::unique_ptr<Weight> CpuBackend::upload_weight(std::span<const WeightBlock> blocks, DType as) {
    FloatEnvironment environment;
    return std::make_unique<CpuWeight>(blocks, as, kernels_, pool_);
}

size_t CpuBackend::thread_scratch_bytes(int vocab) const {
    const size_t row = round_up(size_t(vocab) * sizeof(float));
    return 3 * row + round_up(size_t(vocab) * sizeof(uint64_t));
}

size_t CpuBackend::scratch_bytes(const Limits& limits) const {
    return size_t(pool_.threads()) * thread_scratch_bytes(limits.vocab);
}

void CpuBackend::reserve(const Limits& limits) {
    scratch_memory_ = allocate(scratch_bytes(limits));
    scratch_vocab_ = limits.vocab;
    scratch_.clear();
    const size_t row = round_up(size_t(limits.vocab) * sizeof(float));
    std::byte* place = static_cast<CpuMemory&>(*scratch_memory_).data();
    for (int i = 0; i < pool_.threads(); ++i) {
        scratch_.push_back({reinterpret_cast<float*>(place), reinterpret_cast<float*>(place + row),
                            reinterpret_cast<int32_t*>(place + 2 * row),
                            reinterpret_cast<uint64_t*>(place + 3 * row)});
        place += thread_scratch_bytes(limits.vocab);
    }
}

void CpuBackend::write(Tensor to, const void* from) {
    const size_t bytes = size_t(to.cols) * size_bytes(to.dtype);
    for (int r = 0; r < to.rows; ++r)
        std::memcpy(row<std::byte>(to, r), static_cast<const std::byte*>(from) + size_t(r) * bytes,
                    bytes);
}

void CpuBackend::read(Tensor from, void* to) {
    const size_t bytes = size_t(from.cols) * size_bytes(from.dtype);
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

}  // namespace aerie
