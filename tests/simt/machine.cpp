// The GPUs, the thread's current one, errors, and failures that a test planned.
#include "simt/machine.h"

#include <climits>
#include <set>
#include <stdexcept>
#include <utility>

namespace simt {

namespace {

struct Machine {
    std::vector<Gpu> gpus{Gpu{}};
    std::vector<cudaError_t> lost{cudaSuccess};
    std::set<std::pair<int, const void*>> loaded;  // kernels that were launched outside of captures
    int driver = CUDART_VERSION;
    cudaError_t driver_result = cudaSuccess;
    int launches_left = INT_MAX, runs_left = INT_MAX;
    long launched_beside = 0;
    cudaError_t launch_error = cudaSuccess;
    Live live;
};

Machine& machine() {
    static Machine all;
    return all;
}

thread_local int current_index = 0;
thread_local cudaError_t last_error = cudaSuccess;

const Gpu& current_one() {
    return machine().gpus[size_t(current_index)];
}

cudaError_t launch_result(const void* kernel, dim3 grid, dim3 block, cudaStream_t stream) {
    if (const cudaError_t lost = state_of(gpu_of(stream)); lost != cudaSuccess) return lost;
    if (gpu_of(stream) != current_index) return cudaErrorInvalidResourceHandle;
    if (!current_one().has_code) return cudaErrorNoKernelImageForDevice;
    if (machine().launches_left-- == 0) return machine().launch_error;
    if (grid.x * grid.y * grid.z == 0 || block.x * block.y * block.z > 1024)
        return cudaErrorInvalidConfiguration;
    if (!captures())
        machine().loaded.emplace(current_index, kernel);
    else if (!machine().loaded.count({current_index, kernel}))
        return cudaErrorStreamCaptureUnsupported;  // loading it now would be illegal
    return cudaSuccess;
}

}  // namespace

void set_gpus(std::vector<Gpu> gpus) {
    if (machine().live.streams + machine().live.buffers > 0)
        throw std::logic_error("simt: something is alive on a GPU that goes");
    machine() = Machine();
    machine().lost.assign(gpus.size(), cudaSuccess);
    machine().gpus = std::move(gpus);
    current_index = 0;
    last_error = cudaSuccess;
}

void set_driver(int version, cudaError_t result) {
    machine().driver = version;
    machine().driver_result = result;
}

long& launched_beside() {
    return machine().launched_beside;
}

void fail_launch(int launches, cudaError_t error) {
    machine().launches_left = launches;
    machine().launch_error = error;
}

void fail_run(int kernels) {
    machine().runs_left = kernels;
}

Live& live() {
    return machine().live;
}

int current_gpu() {
    return current_index;
}

cudaError_t failed(cudaError_t error) {
    if (error != cudaSuccess) last_error = error;
    return error;
}

cudaError_t state_of(int gpu) {
    return machine().lost[size_t(gpu)];
}

void lose(int gpu) {
    machine().lost[size_t(gpu)] = cudaErrorIllegalAddress;
}

bool loses_this_run() {
    return machine().runs_left-- == 0;
}

cudaError_t launch(const void* kernel, dim3 grid, dim3 block, cudaStream_t stream,
                   std::function<void()> work) {
    const cudaError_t result = launch_result(kernel, grid, block, stream);
    if (result != cudaSuccess && captures()) forbid_in_capture();
    if (result != cudaSuccess) return failed(result);
    submit(stream, [work = std::move(work), gpu = gpu_of(stream)] {
        if (state_of(gpu) != cudaSuccess) return;
        loses_this_run() ? lose(gpu) : work();
    });
    return cudaSuccess;
}

cudaError_t attributes_of(const void*) {
    return failed(current_one().has_code ? cudaSuccess : cudaErrorNoKernelImageForDevice);
}

}  // namespace simt

using namespace simt;

const char* cudaGetErrorString(cudaError_t error) {
    switch (error) {
        case cudaErrorMemoryAllocation:
            return "out of memory";
        case cudaErrorInvalidConfiguration:
            return "invalid configuration argument";
        case cudaErrorNoDevice:
            return "no CUDA-capable device is detected";
        case cudaErrorInsufficientDriver:
            return "CUDA driver version is insufficient for CUDA runtime version";
        case cudaErrorSystemNotReady:
            return "system not yet initialized";
        case cudaErrorInvalidDevice:
            return "invalid device ordinal";
        case cudaErrorInvalidValue:
            return "invalid argument";
        case cudaErrorNoKernelImageForDevice:
            return "no kernel image is available for execution on the device";
        case cudaErrorInvalidResourceHandle:
            return "invalid resource handle";
        case cudaErrorNotReady:
            return "device not ready";
        case cudaErrorIllegalAddress:
            return "an illegal memory access was encountered";
        case cudaErrorStreamCaptureUnsupported:
            return "operation not permitted when stream is capturing";
        case cudaErrorStreamCaptureInvalidated:
            return "operation failed due to a previous error during capture";
        case cudaSuccess:
            break;
    }
    return "no error";
}

// The error by which a GPU was lost stays; any other is reported once.
cudaError_t cudaGetLastError() {
    const cudaError_t lost = state_of(current_index);
    const cudaError_t last = std::exchange(last_error, cudaSuccess);
    return lost != cudaSuccess ? lost : last;
}

cudaError_t cudaDriverGetVersion(int* version) {
    *version = machine().driver;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* count) {
    if (machine().driver_result != cudaSuccess) return failed(machine().driver_result);
    *count = int(machine().gpus.size());
    return *count > 0 ? cudaSuccess : failed(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int device) {
    if (device < 0 || device >= int(machine().gpus.size())) return failed(cudaErrorInvalidDevice);
    current_index = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
    const Gpu& gpu = machine().gpus.at(size_t(device));
    if (!gpu.answers) return failed(cudaErrorInvalidDevice);
    *properties = {};
    std::strcpy(properties->name, "execution model");
    properties->totalGlobalMem = gpu.memory_bytes;
    properties->major = gpu.major;
    properties->minor = gpu.minor;
    properties->multiProcessorCount = gpu.multiprocessors;
    properties->sharedMemPerBlockOptin = gpu.block_bytes;
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
    *free = *total = current_one().memory_bytes;
    return state_of(current_index);
}
