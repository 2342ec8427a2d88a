// The registry of this program, which replaces backends/registry.cpp: the only device is a CPU that
// may refuse memory.
#include <atomic>

#include "api/failing.h"
#include "backend/observed.h"
#include "backend/registry.h"
#include "core/error.h"
#include "cpu/cpu_backend.h"

namespace aerie {

namespace {

std::atomic<size_t> requests = 0, failing = 0;

void ask() {
    if (++requests == failing) throw Error("cpu: out of device memory", Cause::device_memory);
}

class FailingBackend final : public ObservedBackend {
  public:
    using ObservedBackend::ObservedBackend;

    Buffer allocate(size_t size_bytes) override {
        ask();
        return ObservedBackend::allocate(size_bytes);
    }
    std::unique_ptr<Weight> upload_weight(std::span<const WeightBlock> blocks,
                                          WeightUse use) override {
        ask();
        return ObservedBackend::upload_weight(blocks, use);
    }
};

}  // namespace

std::string best_device(std::span<const Capabilities>) {
    return "cpu";
}

std::vector<Capabilities> list_devices() {
    return {cpu_capabilities()};
}

std::unique_ptr<Backend> open_device(const std::string&, const DeviceOptions& options) {
    ask();
    return std::make_unique<FailingBackend>(open_cpu(options.threads));
}

namespace test {

void fail_device(size_t n) {
    requests = 0;
    failing = n;
}

size_t device_requests() {
    return requests;
}

}  // namespace test
}  // namespace aerie
