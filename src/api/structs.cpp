#include "api/structs.h"

namespace aerie::api {

namespace {

template <class Struct>
size_t init_at(Struct* value, size_t size) noexcept {
    if (value && size >= sizeof(size_t)) {
        std::memset(static_cast<void*>(value), 0, size);
        value->size = size;
    }
    return sizeof(Struct);
}

}  // namespace

size_t checked_size(const void* given, size_t least, const char* type) {
    constexpr size_t kMost = 1 << 16;  // a larger size was never set
    if (!given) throw UsageError(std::string(type) + " is null");
    size_t size = 0;
    std::memcpy(&size, given, sizeof(size));
    if (size < least || size > kMost)
        throw UsageError(std::string(type) + " has a size of " + std::to_string(size) +
                         " bytes, which no version of it has: begin with " + type + "_init()");
    return size;
}

std::string_view given_text(const char* text, size_t bytes, const char* what) {
    given(text, what);
    return {text, bytes > 0 ? bytes : std::strlen(text)};
}

}  // namespace aerie::api

size_t aerie_device_init_at(aerie_device* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_listed_model_init_at(aerie_listed_model* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_model_options_init_at(aerie_model_options* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_forecast_init_at(aerie_forecast* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_model_info_init_at(aerie_model_info* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_sampling_init_at(aerie_sampling* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_request_init_at(aerie_request* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_step_init_at(aerie_step* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_answer_init_at(aerie_answer* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_token_init_at(aerie_token* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_cycle_init_at(aerie_cycle* value, size_t size) {
    return aerie::api::init_at(value, size);
}
size_t aerie_statistics_init_at(aerie_statistics* value, size_t size) {
    return aerie::api::init_at(value, size);
}
