// `aerie serve`: a model over HTTP.
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "assumed.h"
#include "commands.h"
#include "core/utf8.h"
#include "learning.h"
#include "serve/loading.h"
#include "serve/requests/names.h"
#include "serve/service.h"
#include "serve/sockets/server.h"
#include "serve/threads.h"
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

// Answers by a handler of its own while the model is loaded, from another thread.
class ServingThread {
  public:
    ServingThread(Server& server, RequestHandler& first)
        : server_(server),
          threads_(start_threads(
              1, [&] { server.run(first); }, [] {})) {}
    ~ServingThread() {
        if (!threads_.front().joinable()) return;
        server_.stop();
        threads_.front().join();
    }
    void join() { threads_.front().join(); }

  private:
    Server& server_;
    std::vector<std::thread> threads_;  // one
};

// A signal has ended the server before the model was loaded.
struct EndedWhileLoading {};

// The stage of loading without the model's path, which is no client's business.
std::string stage_for_clients(const std::string& name, const LoadProgress& now) {
    const std::string line = "loading " + name;
    if (now.total == 0) return line;
    return line + ": " + std::to_string(now.done >> 20) + " of " + std::to_string(now.total >> 20) +
           " MiB";
}

std::shared_ptr<SharedModel> load_model(
    const ServeOptions& options, LoadOptions& load,
    const std::function<void(const LoadProgress&)>& on_progress) {
    const auto progress = std::make_shared<ProgressLine>(options.quiet);
    load.on_progress = [progress, on_progress](const LoadProgress& now) {
        progress->show(now.line);
        on_progress(now);
    };
    ModelFiles files = ModelFiles::open(load);
    Tokenizer tokenizer = load_tokenizer(files);
    check_chat_template(tokenizer.chat_template());
    auto model = std::make_shared<SharedModel>(std::move(files), std::move(tokenizer), load);
    progress->clear();
    return model;
}

std::string address_of(const ServeOptions& options, const Server& server) {
    const std::string host =
        options.host.find(':') == std::string::npos ? options.host : "[" + options.host + "]";
    return "http://" + host + ":" + std::to_string(server.port());
}

// The lines that say where the server is and what it serves.
void tell_ready(const ServeOptions& options, const SharedModel& model, const std::string& name,
                const std::string& address) {
    tell("aerie: " + printable(name) + " at " + address + "\n" + "  page     " + address + "/\n" +
         "  API      " + address + "/v1 (OpenAI's; any model name" +
         (options.strict_model ? " is refused but this one)\n" : ")\n") + "  context  " +
         std::to_string(model.context()) + " tokens, " + std::to_string(options.parallel) +
         " requests at a time\n" + "  KV cache " + std::to_string(model.cache_tokens()) +
         " tokens of " + std::to_string(options.parallel + options.keep) +
         " conversations together\n" + "  drafter  " + printable(drafter_of(model)) + "\n");
    if (options.kv_tokens && *options.kv_tokens < model.cache_tokens())
        tell("aerie: --kv-tokens " + std::to_string(*options.kv_tokens) +
             " is less than a context: it has " + std::to_string(model.cache_tokens()) +
             " (-c makes the context smaller)\n");
    if (options.learn)
        tell("aerie: learning from requests that carry a key; aerie forget deletes it\n");
}

}  // namespace

int run_serve(const ServeOptions& options) {
    LoadOptions load = locate(options.model);
    load.sequences = options.parallel + options.keep;
    load.cache_tokens = options.kv_tokens ? *options.kv_tokens : kFittingCache;
    load.sequences_in_pass = options.parallel;
    const std::string name = options.alias ? *options.alias : name_of(load.model);
    // An address that is in use is reported before anything is loaded.
    Server server(server_options(options));
    const std::string address = address_of(options, server);
    if (!options.quiet)
        tell("aerie: loading " + printable(name) + "; until then " + address +
             " answers 503 with the progress\n");

    ServiceOptions service_options;
    service_options.model_name = name;
    service_options.page = kChatPage;
    service_options.page_policy = kChatPagePolicy;
    service_options.parallel = options.parallel;
    service_options.strict_model = options.strict_model;
    service_options.log = [](const std::string& line) { tell("aerie: " + printable(line) + "\n"); };
    if (!options.quiet) service_options.requests_log = service_options.log;

    Loading loading(kChatPage, kChatPagePolicy);
    std::shared_ptr<SharedModel> model;
    std::optional<Service> service;
    ServingThread serving(server, loading);
    try {
        model = load_model(options, load, [&](const LoadProgress& now) {
            if (server.is_ending()) throw EndedWhileLoading();
            loading.set_stage(stage_for_clients(name, now));
        });
    } catch (const EndedWhileLoading&) {
        return 0;
    }
    if (!options.quiet) {
        tell_assumed(model->files());
        tell_unused(options.model, load.draft.method);
        tell_dropped_system_messages(model->tokenizer());
    }
    if (options.learn) service_options.learning = start_learning(model, load, service_options.log);
    service.emplace(model, service_options);
    server.hand_over(*service);
    if (!options.quiet && !server.is_ending()) tell_ready(options, *model, name, address);
    serving.join();
    const std::lock_guard lock(model->mutex());
    if (options.model.profile) print_op_times(model->backend());
    model->review_costs();
    return 0;
}

}  // namespace aerie
