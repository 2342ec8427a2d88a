#include "between.h"

#include <aerie.h>
#include <dlfcn.h>

#include <atomic>

// The library's function of that name, which the one in this file replaces.
#define NEXT(function) reinterpret_cast<decltype(&function)>(dlsym(RTLD_NEXT, #function))

// The library's list of devices, with one more device that cannot be used.
extern "C" aerie_status aerie_context_devices(aerie_context* context, size_t* count) {
    const aerie_status status = NEXT(aerie_context_devices)(context, count);
    ++*count;
    return status;
}

extern "C" aerie_status aerie_context_device(aerie_context* context, size_t index,
                                             aerie_device* device) {
    if (NEXT(aerie_context_device)(context, index, device) == AERIE_OK) return AERIE_OK;
    device->name = "vulkan:9";
    device->description = "a device";
    device->problem = "its driver is of another age";
    device->is_best = 0;
    return AERIE_OK;
}

namespace {

std::atomic<bool> is_cancelled = false;
// Steps of the newest answer that ended after it was cancelled.
std::atomic<int> steps_since = 0;

struct Watched {
    aerie_step_callback callback;
    void* user;
};

int watch(void* user, aerie_session* session, const aerie_step* step) {
    if (is_cancelled) ++steps_since;
    const Watched& watched = *static_cast<Watched*>(user);
    return watched.callback(watched.user, session, step);
}

}  // namespace

extern "C" aerie_status aerie_session_run(aerie_session* session, aerie_step_callback callback,
                                          void* user) {
    Watched watched{callback, user};
    steps_since = 0;
    is_cancelled = false;
    return NEXT(aerie_session_run)(session, watch, &watched);
}

extern "C" void aerie_session_cancel(aerie_session* session) {
    is_cancelled = true;
    NEXT(aerie_session_cancel)(session);
}

bool was_cancelled() {
    return is_cancelled;
}

int steps_since_cancel() {
    return steps_since;
}
