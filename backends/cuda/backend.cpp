// Life of the CUDA backend: opening, memory, weights, scratch, transfers, recordings. The ops are
// in one file each.
#include "cuda/backend.h"

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "backend/weight_rows.h"
#include "cuda/check.h"
#include "cuda/code.h"
#include "cuda/cuda_backend.h"
#include "cuda/scratch.h"
#include "cuda/weight.h"

namespace aerie {
namespace cuda {

namespace {

struct Count {
    int devices = 0;
    std::string problem;  // why a driver lists no GPU; empty if there is no driver, or no GPU
    std::string error;    // message of the runtime's call; empty if it succeeded
    bool has_driver = true;
};

Count count_devices() {
    Count count;
    int driver = 0;
    const cudaError_t result = cudaGetDeviceCount(&count.devices);
    if (result == cudaSuccess) return count;
    (void)cudaGetLastError();
    count.devices = 0;
    count.error = cudaGetErrorString(result);
    // Without a driver the version is 0, but the error is that of a driver that is too old.
    count.has_driver = cudaDriverGetVersion(&driver) == cudaSuccess && driver > 0;
    if (!count.has_driver || result == cudaErrorNoDevice) return count;
    const bool is_old = result == cudaErrorInsufficientDriver && driver < CUDART_VERSION;
    count.problem = is_old ? driver_problem(driver, CUDART_VERSION)
                           : "its driver cannot be asked (" + count.error + ")";
    return count;
}

Capabilities unknown_device(const std::string& problem) {
    Capabilities caps;
    caps.name = "cuda:0";
    caps.description = "NVIDIA GPU";
    caps.kind = DeviceKind::discrete_gpu;
    caps.problem = problem;
    return caps;
}

std::string compute_capability(const cudaDeviceProp& properties) {
    return std::to_string(properties.major) + "." + std::to_string(properties.minor);
}

// A broken device gets a problem, and does not affect the others.
Capabilities describe(int index) {
    Capabilities caps;
    caps.name = "cuda:" + std::to_string(index);
    cudaDeviceProp properties;
    const cudaError_t result = cudaGetDeviceProperties(&properties, index);
    if (result != cudaSuccess) {
        (void)cudaGetLastError();
        caps.problem = std::string("cannot be asked: ") + cudaGetErrorString(result);
        return caps;
    }
    const std::string capability = compute_capability(properties);
    caps.description = std::string(properties.name) + " (compute capability " + capability + "), " +
                       std::to_string(properties.multiProcessorCount) + " multiprocessors";
    if (!runs_on(built_for(), properties.major, properties.minor))
        caps.problem = "this build has no code for compute capability " + capability +
                       ", it is for " + std::string(built_for()) +
                       "; build with -DAERIE_CUDA_ARCHITECTURES=" +
                       std::to_string(properties.major * 10 + properties.minor);
    if (is_compiled_by_driver(built_for(), properties.major, properties.minor))
        caps.details = {"no machine code of this build: its driver compiles the kernels once"};
    caps.memory_bytes = properties.totalGlobalMem;
    caps.records = true;
    caps.kind = properties.integrated ? DeviceKind::integrated_gpu : DeviceKind::discrete_gpu;
    caps.most.rows = caps.most.heads = caps.most.places = kMaxGrid;
    caps.most.head_dim = kMaxHeadDim;
    caps.most.context = kMaxGrid * kPageSize;
    return caps;
}

}  // namespace

int find_device(const std::string& device) {
    constexpr std::string_view kPrefix = "cuda:";
    const char* end = device.data() + device.size();
    int index = -1;
    if (!device.starts_with(kPrefix) ||
        std::from_chars(device.data() + kPrefix.size(), end, index).ptr != end || index < 0)
        throw Error(device + ": expected cuda:N, such as cuda:0");
    const Count count = count_devices();
    if (!count.problem.empty()) throw Error(device + ": " + count.problem);
    if (!count.error.empty())
        throw Error(device + ": no NVIDIA driver that this build can use (" + count.error + ")");
    if (index >= count.devices)
        throw Error(device +
                    ": no such device; NVIDIA GPUs here: " + std::to_string(count.devices));
    return index;
}

CudaBackend::CudaBackend(int index, bool profile,
                         const std::function<void(const std::string&)>& on_progress)
    : capabilities_(describe(index)) {
    if (!capabilities_.problem.empty())
        throw Error(capabilities_.name + ": " + capabilities_.problem);
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, index));
    if (on_progress && is_compiled_by_driver(built_for(), properties.major, properties.minor))
        on_progress("the driver compiles the kernels for compute capability " +
                    compute_capability(properties) + ", once: about half a minute");
    queue_ = std::make_shared<Queue>(index, profile);
    check_code(capabilities_.name);
    if (kernels_may_begin_early()) queue_->let_kernels_start_beside();
    split_.multiprocessors = properties.multiProcessorCount;
    split_.block_bytes = properties.sharedMemPerBlockOptin;
    do_reserve({});
}

Buffer CudaBackend::allocate(size_t size_bytes) {
    auto memory = std::make_unique<CudaMemory>(size_bytes, queue_);
    queue_->fill(memory->data(), 0, size_bytes);
    return memory;
}

CudaWeight::CudaWeight(std::span<const WeightBlock> blocks, WeightUse use,
                       const std::function<Buffer(size_t)>& allocate)
    : Weight(blocks, use) {
    size_t bytes = 0;
    std::vector<size_t> offsets;
    for (const WeightSegment& place : segments) {
        // Gate and up of one type are interleaved row by row.
        const bool paired = use == WeightUse::gated && place.rows == rows;
        const int each = matrix_rows > 0 ? matrix_rows : place.rows;
        const RowOrder order = paired ? RowOrder::paired(rows) : RowOrder::plain(each);
        parts_.push_back({place, cols, order, nullptr, packed_bytes(place.dtype, each, cols)});
        offsets.push_back(bytes);
        bytes += size_t(place.rows / each) * parts_.back().matrix_bytes;
    }
    memory_ = allocate(bytes);
    for (size_t i = 0; i < parts_.size(); ++i)
        parts_[i].data = static_cast<CudaMemory&>(*memory_).data() + offsets[i];
}

bool CudaBackend::stores(DType type) const {
    return is_float(type) || layout_of(type).groups > 0;
}

namespace {

// Rows as they come, if the GPU packs them; else converted to the type that they are stored in, by
// all threads of the host, since this takes much longer than any copy.
class HostRows {
  public:
    const std::byte* data;
    DType type;

    HostRows(const WeightBlock& block, int first, int count, std::vector<std::byte>& room,
             std::vector<std::byte>& packed)
        : data(block.read(first, count, room)), type(block.dtype) {
        if (packs_rows(block.dtype, block.stored)) return;
        const size_t bytes = size_bytes(block.stored, size_t(block.cols));
        packed.resize(size_t(count) * bytes);
        const size_t threads = std::max(std::thread::hardware_concurrency(), 1u);
        std::vector<RowConverter> converters(threads, RowConverter(block.stored, block.cols));
        std::atomic<int> next = 0;
        std::vector<std::jthread> running;
        for (RowConverter& converter : converters)
            running.emplace_back([&, rows = data] {
                for (int i; (i = next++) < count;)
                    std::memcpy(packed.data() + size_t(i) * bytes,
                                converter.convert(rows + size_t(i) * block.row_bytes(), type),
                                bytes);
            });
        running.clear();  // waits
        data = packed.data();
        type = block.stored;
    }
};

}  // namespace

void CudaBackend::replay(uint64_t key, const std::function<void()>& record) {
    // Ops leave rows and sums for later ops of their pass only. The pass may end, or throw, before
    // these come.
    struct Pass {
        CudaBackend& backend;
        explicit Pass(CudaBackend& entered) : backend(entered) {
            backend.pending_consumers_.clear();
            backend.is_in_pass_ = true;
        }
        ~Pass() {
            backend.is_in_pass_ = false;
            backend.deferred_reduction_ = {};
            backend.pending_consumers_.clear();
        }
    };
    const Pass pass(*this);
    queue_->replay(key, [&] {
        record();
        finish_reduction();
    });
}

// Uploads by way of a staging buffer, some rows at a time.
std::unique_ptr<Weight> CudaBackend::upload_weight(std::span<const WeightBlock> blocks,
                                                   WeightUse use) {
    constexpr size_t kStagingBytes = size_t(32) << 20;
    auto weight =
        std::make_unique<CudaWeight>(blocks, use, [this](size_t bytes) { return allocate(bytes); });
    const size_t cols = size_t(weight->cols);
    size_t widest = 0;
    for (const WeightBlock& block : blocks)
        widest = std::max({widest, size_bytes(block.dtype, cols), size_bytes(block.stored, cols)});
    const size_t staged_rows = std::clamp<size_t>(kStagingBytes / widest, 1, size_t(weight->rows));
    const CudaMemory staging(staged_rows * widest, queue_);
    std::vector<std::byte> room, packed;
    for (const CudaSegment& part : weight->parts()) {
        int row = 0;
        std::byte* to = part.data;
        for (const WeightBlock& block : blocks_of(blocks, part.place)) {
            for (int first = 0; first < block.rows; first += int(staged_rows)) {
                const int count = std::min(int(staged_rows), block.rows - first);
                const HostRows rows(block, first, count, room, packed);
                queue_->upload(staging.data(), rows.data,
                               size_t(count) * size_bytes(rows.type, cols));
                pack_rows({staging.data(), rows.type, to, part.place.dtype, row, count, part.cols,
                           part.order},
                          *queue_);
                row += count;
                if (rows.data == room.data() || rows.data == packed.data())
                    sync();  // before the next rows overwrite these
            }
            if (use != WeightUse::experts) continue;
            to += part.matrix_bytes;
            row = 0;
        }
    }
    sync();  // before the staging buffer is freed
    return weight;
}

size_t CudaBackend::scratch_bytes(const Limits& limits) const {
    return lay_out_scratch(limits, split_).bytes;
}

void CudaBackend::do_reserve(const Limits& limits) {
    const ScratchLayout layout = lay_out_scratch(limits, split_);
    pending_consumers_.clear();  // the old scratch goes, with all deferred inputs in it
    scratch_.reset();
    scratch_ = allocate(layout.bytes);
    std::byte* memory = static_cast<CudaMemory&>(*scratch_).data();
    packed_ = memory;
    partials_ = reinterpret_cast<float*>(memory + layout.partials);
    partial_floats_ = layout.partial_floats;
    rankings_ = memory + layout.rankings;
    logits_ = reinterpret_cast<float*>(memory + layout.logits);
    quantised_ = dense(scratch_.get(), DType::I8G32, 0, 0);
    quantised_.offset_bytes = layout.quantised;
    place_scales_ = reinterpret_cast<float*>(memory + layout.place_scales);
    place_columns_ = memory + layout.place_columns;
    split_.split.arrived = reinterpret_cast<unsigned*>(memory + layout.arrived);
    tickets_ = reinterpret_cast<unsigned*>(memory + layout.tickets);
    split_.split.sums = reinterpret_cast<float4*>(memory + layout.split_sums);
    split_.sum_count = layout.split_sum_count;
    limits_ = limits;
}

}  // namespace cuda

std::vector<Capabilities> cuda_capabilities() {
    const cuda::Count count = cuda::count_devices();
    if (!count.problem.empty()) return {cuda::unknown_device(count.problem)};
    std::vector<Capabilities> devices;
    for (int i = 0; i < count.devices; ++i) devices.push_back(cuda::describe(i));
    return devices;
}

std::string cuda_absence() {
    const cuda::Count count = cuda::count_devices();
    if (count.devices > 0 || !count.problem.empty()) return "";
    return count.has_driver ? "the NVIDIA driver finds no GPU" : "there is no NVIDIA driver";
}

std::unique_ptr<Backend> open_cuda(const std::string& device, bool profile,
                                   const std::function<void(const std::string&)>& on_progress) {
    return std::make_unique<cuda::CudaBackend>(cuda::find_device(device), profile, on_progress);
}

}  // namespace aerie
