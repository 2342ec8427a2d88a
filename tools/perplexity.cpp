// `aerie perplexity`: how well a model predicts a text.
#include "measure/perplexity.h"
#include "engine/model.h"

#include "commands.h"
#include "core/error.h"
#include "format.h"
#include "io/json.h"
#include "terminal.h"
#include "text/documents.h"

namespace aerie {

namespace {

std::vector<std::vector<int>> encode_documents(const Tokenizer& tokenizer,
                                               const std::string& text) {
    std::vector<std::vector<int>> documents;
    for (std::string_view document : split_documents(text))
        documents.push_back(tokenizer.encode_from_start(document));
    return documents;
}

Json result_json(const Perplexity& result, const PerplexityOptions& options, size_t documents) {
    return Json::Object{{"schema", "aerie-perplexity-1"},   {"file", options.file},
                        {"documents", uint64_t(documents)}, {"window", options.window},
                        {"tokens", result.tokens},          {"nll", result.nll},
                        {"perplexity", result.value()}};
}

}  // namespace

int run_perplexity(const PerplexityOptions& options) {
    if (options.file.empty())
        throw UsageError("a text to score is needed: aerie perplexity FILE (- is stdin)");
    ModelOptions model = options.model;
    model.draft = kNoDrafts;
    model.context = options.window;
    LoadOptions load_options = locate(model);
    const std::string text = read_text_input(options.file);
    ProgressLine progress(options.quiet);
    load_options.on_progress = [&](const LoadProgress& now) { progress.show(now.line); };
    ModelFiles files = ModelFiles::open(load_options);
    const Tokenizer tokenizer = load_tokenizer(files);
    Model loaded(std::move(files), load_options);

    PerplexityTask task;
    task.documents = encode_documents(tokenizer, text);
    task.window = options.window;
    task.pass_rows = load_options.prefill_rows;
    task.cancelled = interrupted;
    task.on_window = [&](int64_t done, int64_t all) {
        progress.show(std::to_string(done) + " of " + std::to_string(all) + " tokens");
    };
    if (scored_tokens(task) == 0)
        throw UsageError((options.file == "-" ? "stdin" : options.file) +
                         ": the text has no token to score");
    end_cleanly_on_signals();
    KvPool kv(loaded.backend(), kv_shape(loaded.files().config, loaded.limits(), {}));
    const Perplexity result = measure_perplexity(loaded.backend(), loaded.target(), kv, task);
    progress.clear();
    if (interrupted()) return interrupted();
    if (model.profile) print_op_times(loaded.backend());
    if (options.json) {
        print(result_json(result, options, task.documents.size()).dump() + "\n");
    } else {
        print(format("perplexity %.4f over %lld tokens (nll %.3f, windows of %d, %zu documents)\n",
                     result.value(), static_cast<long long>(result.tokens), result.nll,
                     options.window, task.documents.size()));
    }
    return 0;
}

}  // namespace aerie
