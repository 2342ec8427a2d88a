// The context: devices, log, version.
#include "api/handles.h"
#include "api/structs.h"
#include "backend/registry.h"

using namespace aerie;
using namespace aerie::api;

namespace {

std::vector<ListedDevice> listed_devices() {
    const std::vector<Capabilities> all = list_devices();
    const std::string best = best_device(all);
    std::vector<ListedDevice> listed;
    for (const Capabilities& device : all) {
        std::string details;
        for (const std::string& line : device.details)
            details += (details.empty() ? "" : "\n") + line;
        listed.push_back({device, details, device.name == best});
    }
    return listed;
}

const std::vector<ListedDevice>& devices_of(aerie_context& context) {
    const std::lock_guard lock(context.listing);
    if (!context.devices) context.devices = listed_devices();
    return *context.devices;
}

}  // namespace

const char* aerie_version(void) {
    return AERIE_VERSION;
}

const char* aerie_status_name(aerie_status status) {
    switch (status) {
        case AERIE_OK:
            return "ok";
        case AERIE_ERROR:
            return "error";
        case AERIE_USAGE:
            return "usage";
        case AERIE_OUT_OF_MEMORY:
            return "out of memory";
        case AERIE_CANCELLED:
            return "cancelled";
    }
    return "unknown";
}

void aerie_free(void* memory) {
    FreeGiven()(memory);
}

aerie_status aerie_context_create(aerie_context** context) {
    if (!context) return AERIE_USAGE;
    *context = nullptr;
    Message nobodys;
    try {
        *context = new aerie_context();
        return AERIE_OK;
    } catch (...) {
        return caught(nobodys);
    }
}

void aerie_context_free(aerie_context* context) {
    enter(context, [&] {
        context->log->set(nullptr, nullptr);
        delete context;
    });
}

const char* aerie_context_message(const aerie_context* context) {
    return context ? context->messages.text() : kNullHandle;
}

aerie_status aerie_context_set_log(aerie_context* context, aerie_log_callback callback,
                                   void* user) {
    return enter(context, [&] { context->log->set(callback, user); });
}

aerie_status aerie_context_devices(aerie_context* context, size_t* count) {
    return enter(context, [&] { given(count, "count") = devices_of(*context).size(); });
}

aerie_status aerie_context_device(aerie_context* context, size_t index, aerie_device* out) {
    return enter(context, [&] {
        const std::vector<ListedDevice>& all = devices_of(*context);
        if (index >= all.size())
            throw UsageError("there are " + std::to_string(all.size()) + " devices, no number " +
                             std::to_string(index));
        const Capabilities& device = all[index].device;
        aerie_device shown = aerie_device_init();
        shown.name = device.name.c_str();
        shown.description = device.description.c_str();
        shown.details = all[index].details.c_str();
        shown.problem = device.problem.c_str();
        shown.memory_bytes = device.memory_bytes;
        shown.kind = int32_t(device.kind);
        shown.threads = device.threads;
        shown.is_best = all[index].is_best;
        write_struct(out, shown, "aerie_device");
    });
}

static_assert(int(DeviceKind::cpu) == AERIE_DEVICE_CPU);
static_assert(int(DeviceKind::integrated_gpu) == AERIE_DEVICE_INTEGRATED_GPU);
static_assert(int(DeviceKind::virtual_gpu) == AERIE_DEVICE_VIRTUAL_GPU);
static_assert(int(DeviceKind::discrete_gpu) == AERIE_DEVICE_DISCRETE_GPU);
