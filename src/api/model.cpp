// Opens models and reports on them.
#include "api/handles.h"
#include "api/options.h"
#include "api/structs.h"
#include "backend/registry.h"
#include "talk/model_sampling.h"
#include "text/chat_template.h"

using namespace aerie;
using namespace aerie::api;

namespace {

aerie_forecast forecast_of(const LoadOptions& options) {
    ModelFiles files = with_cause(Cause::damaged, [&] { return ModelFiles::open(options); });
    const auto device = with_cause(Cause::no_device, [&] {
        return open_device(options.device, {.threads = options.threads,
                                            .on_progress = options.on_device_progress()});
    });
    files.replace_unstorable(*device);
    files.fit_context(options, *device);
    const MemoryPlan plan = files.plan(options, *device);
    aerie_forecast forecast = aerie_forecast_init();
    forecast.target_weights = plan.target_weights;
    forecast.draft_weights = plan.head_weights;
    forecast.kv_cache = plan.kv_cache;
    forecast.scratch = plan.scratch;
    forecast.program = plan.program;
    forecast.total = plan.total();
    forecast.device_memory = device->capabilities().memory_bytes;
    forecast.fits = files.fits_in_memory(options, *device);
    forecast.context = files.context;
    forecast.largest_context = files.largest_context(options, *device);
    return forecast;
}

// A template that cannot be run has no system role either.
bool has_system_role(const Tokenizer& tokenizer) {
    if (tokenizer.chat_template().text.empty()) return false;
    try {
        return why_no_system_message(tokenizer.chat_template(), tokenizer.named_tokens(), "x")
            .empty();
    } catch (const Error&) {
        return false;
    }
}

std::unique_ptr<aerie_model> opened(const LoadOptions& options, const std::shared_ptr<Log>& log) {
    // A device's failures name their cause, so what else goes wrong is due to the files.
    auto open =
        with_cause(Cause::damaged, [&] { return std::make_shared<OpenModel>(options, log); });
    auto handle = std::make_unique<aerie_model>(std::move(open));
    const SharedModel& model = handle->model();
    handle->path = utf8_of(options.model);
    if (model.files().head) handle->head = utf8_of(options.head);
    handle->has_system_role = has_system_role(model.tokenizer());
    handle->weights = model.files().target.tensors.type_names();
    for (const auto& [type, bytes] : model.files().target_types(options))
        handle->weight_bytes += bytes;
    log->say(AERIE_LOG_INFO, handle->path + " on " + model.device().name + ", draft " +
                                 options.draft.method +
                                 (handle->head.empty() ? "" : " with " + handle->head));
    return handle;
}

}  // namespace

aerie_status aerie_model_forecast(aerie_context* context, const aerie_model_options* options,
                                  aerie_forecast* forecast) {
    return enter(context, [&] {
        checked_size(forecast, "aerie_forecast");
        write_struct(forecast, forecast_of(load_options(options)), "aerie_forecast");
    });
}

aerie_status aerie_model_open(aerie_context* context, const aerie_model_options* options,
                              aerie_model** model) {
    return enter_to_make(context, model, [&] {
        given(model, "model");
        *model = opened(load_options(options), context->log).release();
    });
}

void aerie_model_free(aerie_model* model) {
    enter(model, [&] { delete model; });
}

const char* aerie_model_message(const aerie_model* model) {
    return model ? model->messages.text() : kNullHandle;
}

aerie_cause aerie_model_cause(const aerie_model* model) {
    return model ? model->messages.cause() : AERIE_CAUSE_ARGUMENT;
}

aerie_status aerie_model_failure(const aerie_model* model, char** message, aerie_cause* cause) {
    return enter_to_make(model, message,
                         [&] { give_failure(model->messages.newest(), message, cause); });
}

aerie_status aerie_model_get_info(const aerie_model* handle, aerie_model_info* out) {
    return enter(handle, [&] {
        const SharedModel& model = handle->model();
        aerie_model_info info = aerie_model_info_init();
        info.path = handle->path.c_str();
        info.head = handle->head.c_str();
        info.device = model.device().name.c_str();
        info.device_description = model.device().description.c_str();
        info.draft = model.options().draft.method.c_str();
        info.eos_ids = model.eos_ids().data();
        info.eos_count = model.eos_ids().size();
        info.context = model.context();
        info.trained_context = model.files().config.context;
        info.vocab = model.files().config.vocab;
        info.tokens = model.tokenizer().size();
        info.bos = model.tokenizer().bos();
        info.sessions = model.options().sequences;
        info.can_draft = model.can_draft();
        const std::string& chat_template = model.tokenizer().chat_template().text;
        info.has_chat_template = !chat_template.empty();
        info.has_system_role = handle->has_system_role;
        info.parameters = model.files().target.tensors.parameters();
        info.weight_bytes = handle->weight_bytes;
        info.architecture = model.files().config.architecture.c_str();
        info.weights = handle->weights.c_str();
        info.chat_template = chat_template.c_str();
        write_struct(out, info, "aerie_model_info");
    });
}

aerie_status aerie_model_get_sampling(const aerie_model* handle, aerie_sampling* out) {
    return enter(handle, [&] {
        const Sampling own = model_sampling(generation_config(handle->model().files().target));
        aerie_sampling sampling = aerie_sampling_init();
        sampling.temperature = own.filters.temperature;
        sampling.top_k = own.filters.top_k;
        sampling.top_p = own.filters.top_p;
        sampling.min_p = own.filters.min_p;
        sampling.repetition = own.penalties.repetition;
        sampling.frequency = own.penalties.frequency;
        sampling.presence = own.penalties.presence;
        write_struct(out, sampling, "aerie_sampling");
    });
}
