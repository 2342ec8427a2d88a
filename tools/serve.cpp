// `aerie serve`: a model over HTTP.
#include <cstdlib>

#include "assumed.h"
#include "commands.h"
#include "core/utf8.h"
#include "learning.h"
#include "serve/requests/names.h"
#include "serve/sockets/server.h"
#include "terminal.h"
#include "text/chat_template.h"

namespace aerie {

extern const char* const kChatPage;  // serve/page
extern const char* const kChatPagePolicy;

namespace {

std::string api_key_of(const ServeOptions& options) {
    const char* variable = std::getenv("AERIE_API_KEY");
    if (!options.api_key && !variable) return "";
    const std::string key = options.api_key.value_or(variable ? variable : "");
    const std::string fault = fault_of_key(key);
    if (!fault.empty())
        throw UsageError(std::string(options.api_key ? "--api-key " : "AERIE_API_KEY ") + fault);
    return key;
}

// The name of the model's folder or file, independent of the caller's working directory.
std::string name_of(const std::filesystem::path& model) {
    std::filesystem::path path = std::filesystem::absolute(model).lexically_normal();
    if (path.filename().empty()) path = path.parent_path();
    const std::string name = is_gguf(path) ? path.stem().string() : path.filename().string();
    const std::string fault = fault_of_model_name(name);
    if (!fault.empty()) throw UsageError(fault + "; give one by --alias");
    return name;
}

ServerOptions server_options(const ServeOptions& options) {
    ServerOptions server;
    server.host = options.host;
    server.port = options.port;
    server.api_key = api_key_of(options);
    server.hosts = options.hosts;
    server.origins = options.origins;
    server.drain_seconds = options.drain_seconds;
    server.log = [quiet = options.quiet](const std::string& line) {
        if (!quiet) tell("aerie: " + printable(line) + "\n");
    };
    return server;
}

// Clients send system messages unasked, so a request with one is answered all the same. Where the
// template cannot be run at all, each request gets the reason.
void tell_dropped_system_messages(const Tokenizer& tokenizer) {
    const NamedText& chat_template = tokenizer.chat_template();
    if (chat_template.text.empty()) return;
    try {
        const std::string why =
            why_no_system_message(chat_template, tokenizer.named_tokens(), "Be brief.");
        if (!why.empty())
            tell("aerie: this model takes no system message: " + printable(why) + "\n");
    } catch (const jinja::Failure&) {
    }
}

}  // namespace

int run_serve(const ServeOptions& options) {
    LoadOptions load = locate(options.model);
    load.sequences = options.parallel + options.keep;
    const std::string name = options.alias ? *options.alias : name_of(load.model);
    // An address that is in use is reported before anything is loaded.
    Server server(server_options(options));
    ProgressLine progress(options.quiet);
    load.on_progress = [&](const LoadProgress& now) { progress.show(now.line); };
    ModelFiles files = ModelFiles::open(load);
    Tokenizer tokenizer = load_tokenizer(files);
    check_chat_template(tokenizer.chat_template());
    const auto model = std::make_shared<SharedModel>(std::move(files), std::move(tokenizer), load);
    progress.clear();
    if (!options.quiet) {
        tell_assumed(model->files());
        tell_unused(options.model, load.draft.method);
        tell_dropped_system_messages(model->tokenizer());
    }

    ServiceOptions service_options;
    service_options.model_name = name;
    service_options.page = kChatPage;
    service_options.page_policy = kChatPagePolicy;
    service_options.parallel = options.parallel;
    service_options.log = [](const std::string& line) { tell("aerie: " + printable(line) + "\n"); };
    if (options.learn) service_options.learning = start_learning(model, load, service_options.log);
    Service service(model, service_options);
    const std::string host =
        options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
    if (!options.quiet)
        tell("aerie: " + service_options.model_name + " at http://" + host + ":" +
             std::to_string(server.port()) + "\n");
    if (!options.quiet && options.learn)
        tell("aerie: learning from requests that carry a key; aerie forget deletes it\n");
    server.run(service);
    const std::lock_guard turn(model->turns());
    if (options.model.profile) print_op_times(model->backend());
    model->review_costs();
    return 0;
}

}  // namespace aerie
