// The context: devices, log, version.
#include "api/handles.h"
#include "api/structs.h"
#include "backend/registry.h"
#include "core/platform.h"
#include "talk/locate.h"

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

std::string heads_of(const ModelAtHand& found) {
    std::string lines;
    for (const std::string& head : found.heads) lines += (lines.empty() ? "" : "\n") + head;
    return lines;
}

void search_models(aerie_context& context, const char* folder) {
    std::vector<std::filesystem::path> folders;
    if (folder) folders = {platform::path_of(folder)};
    const std::vector<ModelAtHand> all = models_at_hand(folders);
    const std::lock_guard lock(context.listing);
    ListedModels& models = context.models;
    const auto kept = [&](std::string text) {
        return models.texts.insert(std::move(text)).first->c_str();
    };
    std::vector<ListedModel> newest;
    for (const ModelAtHand& found : all)
        newest.push_back({kept(found.model.name), kept(utf8_of(found.model.path)),
                          kept(found.model.program), kept(heads_of(found)),
                          found.model.size_bytes});
    models.newest = std::move(newest);
}

constexpr int number_of(std::string_view version) {
    int number = 0, part = 0;
    for (const char c : version) {
        if (c == '.') number = (number + part) * 100, part = 0;
        if (c != '.') part = part * 10 + (c - '0');
    }
    return number + part;
}
static_assert(number_of(AERIE_VERSION) == AERIE_VERSION_NUMBER, "aerie.h has another version");

}  // namespace

const char* aerie_version(void) {
    return AERIE_VERSION;
}

int32_t aerie_version_number(void) {
    return AERIE_VERSION_NUMBER;
}

const char* aerie_cause_name(aerie_cause cause) {
    switch (cause) {
        case AERIE_CAUSE_NONE:
            return "none";
        case AERIE_CAUSE_OTHER:
            return "other";
        case AERIE_CAUSE_ARGUMENT:
            return "argument";
        case AERIE_CAUSE_TOO_LONG:
            return "too long";
        case AERIE_CAUSE_SESSIONS:
            return "sessions";
        case AERIE_CAUSE_NOT_FOUND:
            return "not found";
        case AERIE_CAUSE_FILE:
            return "file";
        case AERIE_CAUSE_DAMAGED:
            return "damaged";
        case AERIE_CAUSE_UNSUPPORTED:
            return "unsupported";
        case AERIE_CAUSE_OTHER_MODEL:
            return "other model";
        case AERIE_CAUSE_NO_DEVICE:
            return "no device";
        case AERIE_CAUSE_DEVICE_LOST:
            return "device lost";
        case AERIE_CAUSE_DEVICE_MEMORY:
            return "device memory";
        case AERIE_CAUSE_HOST_MEMORY:
            return "host memory";
        case AERIE_CAUSE_CANCELLED:
            return "cancelled";
    }
    return "unknown";
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

aerie_cause aerie_context_cause(const aerie_context* context) {
    return context ? context->messages.cause() : AERIE_CAUSE_ARGUMENT;
}

aerie_status aerie_context_failure(const aerie_context* context, char** message,
                                   aerie_cause* cause) {
    return enter_to_make(context, message,
                         [&] { give_failure(context->messages.newest(), message, cause); });
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

aerie_status aerie_context_models(aerie_context* context, const char* models, size_t* count) {
    return enter(context, [&] {
        size_t& found = given(count, "count");
        search_models(*context, models);
        const std::lock_guard lock(context->listing);
        found = context->models.newest.size();
    });
}

aerie_status aerie_context_model(aerie_context* context, size_t index, aerie_listed_model* out) {
    return enter(context, [&] {
        const std::lock_guard lock(context->listing);
        const std::vector<ListedModel>& all = context->models.newest;
        if (index >= all.size())
            throw UsageError("the newest search found " + std::to_string(all.size()) +
                             " models, no number " + std::to_string(index));
        aerie_listed_model shown = aerie_listed_model_init();
        shown.name = all[index].name;
        shown.path = all[index].path;
        shown.program = all[index].program;
        shown.heads = all[index].heads;
        shown.weight_bytes = all[index].weight_bytes;
        write_struct(out, shown, "aerie_listed_model");
    });
}

static_assert(int(DeviceKind::cpu) == AERIE_DEVICE_CPU);
static_assert(int(DeviceKind::integrated_gpu) == AERIE_DEVICE_INTEGRATED_GPU);
static_assert(int(DeviceKind::virtual_gpu) == AERIE_DEVICE_VIRTUAL_GPU);
static_assert(int(DeviceKind::discrete_gpu) == AERIE_DEVICE_DISCRETE_GPU);
