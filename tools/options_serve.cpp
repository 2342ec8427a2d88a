// Flags of `aerie serve`.
#include "help.h"
#include "option_checks.h"
#include "serve/requests/names.h"

namespace aerie {

namespace {

CLI::Validator without(std::string (*fault)(std::string_view)) {
    return CLI::Validator([fault](const std::string& text) { return fault(text); }, "");
}

}  // namespace

void add_serve(CLI::App& app, ServeOptions& options) {
    app.option_defaults()->group("Server");
    app.add_option("-m,--model", options.model.model, kModelHelp)->type_name("MODEL");
    app.add_option("-a,--alias", options.alias,
                   "name of the model towards clients (default: its own)")
        ->check(without(fault_of_model_name))
        ->type_name("NAME");
    app.add_flag("--strict-model", options.strict_model,
                 "refuse requests that name another model (default: any name is taken)");
    app.add_option("--host", options.host,
                   "address to listen at; one that other machines reach needs a key (default: "
                   "127.0.0.1)")
        ->type_name("ADDRESS");
    add_whole(app, "--port", options.port, Range{0, 65535},
              "port; 0: one that is free (default: 8080)");
    app.add_option("--api-key", options.api_key,
                   "what clients must say (Authorization: Bearer KEY); others can see flags, so "
                   "better set AERIE_API_KEY")
        ->type_name("KEY");
    app.add_option("--allow-host", options.hosts,
                   "a further Host that clients may name, such as chat.example.com; may be given "
                   "several times")
        ->allow_extra_args(false)
        ->check(without(fault_of_host))
        ->type_name("NAME[:PORT]");
    app.add_option("--allow-origin", options.origins,
                   "a web page's origin that may ask here, such as https://chat.example.com; may "
                   "be given several times (default: the server's own page alone)")
        ->allow_extra_args(false)
        ->check(without(fault_of_origin))
        ->type_name("ORIGIN");
    add_whole(app, "--parallel", options.parallel, Range{1, kMaxTogether},
              "requests that are answered at a time, in the same passes of the model; 64 more may "
              "wait (default: 4)");
    add_whole(app, "--keep", options.keep, Range{0, 256},
              "conversations beyond those that are kept for what continues them (default: 4)");
    add_whole(
        app, "--kv-tokens", options.kv_tokens, Range{2, INT_MAX},
        "tokens in the KV cache of all conversations together, at least one context; room for "
        "drafts comes on top; the last requests wait when it is full (default: as many as fit "
        "into half of the memory, at most a context for each conversation)");
    add_whole(app, "--drain-seconds", options.drain_seconds, Range{0, 86400},
              "after SIGTERM, for the requests that came (default: 30)");
    app.add_flag("--learn", options.learn,
                 "the model's EAGLE head learns in idle time from the answers to requests that "
                 "carry a key, for each key by itself; `aerie forget` deletes it all");
    app.add_flag("-q,--quiet", options.quiet,
                 "nothing on stderr but errors; else a line for each request");
    add_model_options(app, options.model);
    add_examples(app,
                 {"aerie serve", "aerie serve -hf bartowski/Llama-3.2-3B-Instruct-GGUF --port 8000",
                  "AERIE_API_KEY=secret aerie serve --host 0.0.0.0"});
}

}  // namespace aerie
