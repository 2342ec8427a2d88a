// Life of the CUDA backend: opening, memory, weights, scratch, transfers, recordings. The ops are
// in one file each.
#include "cuda/backend.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "cuda/check.h"
#include "cuda/cuda_backend.h"
#include "cuda/scratch.h"
#include "cuda/weight.h"

namespace aerie {
namespace cuda {

namespace {

int device_count() {
    int count = 0;
    if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
    (void)cudaGetLastError();
    return 0;
}

Capabilities describe(int index) {
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
    Capabilities caps;
    caps.name = "cuda:" + std::to_string(index);
    caps.description = std::string(properties.name) + " (compute capability " +
                       std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                       "), " + std::to_string(properties.multiProcessorCount) + " multiprocessors";
    caps.memory_bytes = properties.totalGlobalMem;
    caps.kind = DeviceKind::discrete_gpu;
    return caps;
}

}  // namespace

CudaBackend::CudaBackend(int index, bool profile) : capabilities_(describe(index)) {
    CUDA_CHECK(cudaSetDevice(index));
    queue_ = std::make_shared<Queue>(profile);
    reserve({});
}

Buffer CudaBackend::allocate(size_t size_bytes) {
    auto memory =
        std::make_unique<CudaMemory>(size_bytes, [queue = queue_] { queue->forget_recordings(); });
    CUDA_CHECK(cudaMemsetAsync(memory->data(), 0, size_bytes, queue_->stream()));
    return memory;
}

// Through a staging buffer, some rows at a time.
std::unique_ptr<Weight> CudaBackend::upload_weight(std::span<const WeightBlock> blocks, DType as,
                                                   WeightUse) {
    constexpr size_t kStagingBytes = size_t(32) << 20;
    const int cols = blocks.front().cols;
    int rows = 0;
    size_t widest = 0;
    for (const WeightBlock& block : blocks) {
        rows += block.rows;
        widest = std::max(widest, size_bytes(block.dtype, size_t(cols)));
    }
    const size_t staged_rows = std::clamp<size_t>(kStagingBytes / widest, 1, size_t(rows));
    const CudaMemory staging(staged_rows * widest, {});
    const bool paired = blocks.size() == 2 && blocks[0].rows == blocks[1].rows;
    const RowOrder order = paired ? RowOrder::paired(rows) : RowOrder::plain(rows);
    auto weight =
        std::make_unique<CudaWeight>(as, rows, cols, order, allocate(packed_bytes(as, rows, cols)));
    int row = 0;
    for (const WeightBlock& block : blocks) {
        const size_t row_bytes = size_bytes(block.dtype, size_t(cols));
        const std::byte* data = static_cast<const std::byte*>(block.data);
        for (int first = 0; first < block.rows; first += int(staged_rows)) {
            const int count = std::min(int(staged_rows), block.rows - first);
            CUDA_CHECK(cudaMemcpyAsync(staging.data(), data + size_t(first) * row_bytes,
                                       size_t(count) * row_bytes, cudaMemcpyHostToDevice,
                                       queue_->stream()));
            pack_rows({staging.data(), block.dtype, weight->data(), as, row, count, cols, order},
                      *queue_);
            row += count;
        }
    }
    sync();  // before the staging buffer goes
    return weight;
}

size_t CudaBackend::scratch_bytes(const Limits& limits) const {
    return lay_out_scratch(limits).bytes;
}

void CudaBackend::reserve(const Limits& limits) {
    const ScratchLayout layout = lay_out_scratch(limits);
    scratch_.reset();
    scratch_ = allocate(layout.bytes);
    std::byte* memory = static_cast<CudaMemory&>(*scratch_).data();
    packed_ = memory;
    partials_ = reinterpret_cast<float*>(memory + layout.partials);
    partial_floats_ = layout.partial_floats;
    rankings_ = memory + layout.rankings;
    logits_ = reinterpret_cast<float*>(memory + layout.logits);
    limits_ = limits;
}

void CudaBackend::write(Tensor to, const void* from) {
    const size_t width = size_bytes(to.dtype, size_t(to.cols));
    const size_t stride = size_bytes(to.dtype, size_t(to.row_stride));
    // From pageable memory this returns when the host data has been taken.
    CUDA_CHECK(cudaMemcpy2DAsync(row<std::byte>(to, 0), stride, from, width, width, size_t(to.rows),
                                 cudaMemcpyHostToDevice, queue_->stream()));
}

}  // namespace cuda

std::vector<Capabilities> cuda_capabilities() {
    std::vector<Capabilities> devices;
    for (int i = 0; i < cuda::device_count(); ++i) devices.push_back(cuda::describe(i));
    return devices;
}

std::unique_ptr<Backend> open_cuda(const std::string& device, bool profile) {
    constexpr std::string_view kPrefix = "cuda:";
    const char* end = device.data() + device.size();
    int index = -1, count = 0;
    if (!device.starts_with(kPrefix) ||
        std::from_chars(device.data() + kPrefix.size(), end, index).ptr != end || index < 0)
        throw Error(device + ": expected cuda:N, such as cuda:0");
    const cudaError_t result = cudaGetDeviceCount(&count);
    if (result != cudaSuccess) {
        (void)cudaGetLastError();
        throw Error(device + ": no NVIDIA driver that this build can use (" +
                    cudaGetErrorString(result) + ")");
    }
    if (index >= count)
        throw Error(device + ": no such device; NVIDIA GPUs here: " + std::to_string(count));
    return std::make_unique<cuda::CudaBackend>(index, profile);
}

}  // namespace aerie
