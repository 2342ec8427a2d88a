// Opens models and reports on them.
#include "api/handles.h"
#include "api/options.h"
#include "api/structs.h"
#include "backend/registry.h"

using namespace aerie;
using namespace aerie::api;

namespace {

std::string utf8_of(const std::filesystem::path& path) {
    const std::u8string text = path.u8string();
    return {text.begin(), text.end()};
}

aerie_forecast forecast_of(const LoadOptions& options) {
    ModelFiles files = ModelFiles::open(options);
    const auto device = open_device(
        options.device, {.threads = options.threads, .on_progress = options.on_progress});
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

std::unique_ptr<aerie_model> opened(const LoadOptions& options, const std::shared_ptr<Log>& log) {
    auto open = std::make_shared<OpenModel>(options, log);
    auto handle = std::make_unique<aerie_model>(std::move(open));
    const SharedModel& model = handle->model();
    handle->path = utf8_of(options.model);
    if (model.files().head) handle->head = utf8_of(options.head);
    handle->has_chat_template = !model.tokenizer().chat_template().text.empty();
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
        info.has_chat_template = handle->has_chat_template;
        write_struct(out, info, "aerie_model_info");
    });
}
