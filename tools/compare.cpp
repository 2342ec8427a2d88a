// `aerie compare`: the table or the JSON object goes to stdout, the page to a file, and the verdict
// is the exit code.
#include <algorithm>

#include "assumed.h"
#include "backend/registry.h"
#include "commands.h"
#include "compare_report.h"
#include "core/error.h"
#include "core/replaced_file.h"
#include "core/utf8.h"
#include "format.h"
#include "measure/perplexity.h"
#include "terminal.h"
#include "text/documents.h"

namespace aerie {

namespace {

// The default prompts: arithmetic, code and prose.
constexpr const char* kPrompts[] = {
    "USER: A baker makes 12 trays of 8 muffins each and sells 70 of them. How many muffins are "
    "left? ASSISTANT:",
    "USER: Complete this Python function.\ndef mean(values):\n ASSISTANT:",
    "DESCRIPTION\nThis command prints the names of the files in a folder, one on each line.",
};

std::vector<std::string> read_prompts(const CompareOptions& options) {
    if (options.prompt && options.prompt->empty())
        throw UsageError("the prompt is empty: leave -p away for prompts of our own");
    if (options.prompt) return {*options.prompt};
    if (!options.prompt_file) return {std::begin(kPrompts), std::end(kPrompts)};
    const std::string text = read_input(*options.prompt_file);
    std::vector<std::string> prompts;
    for (std::string_view prompt : split_documents(text))
        if (!prompt.empty()) prompts.emplace_back(prompt);
    if (prompts.empty()) throw UsageError(*options.prompt_file + ": no prompt in it");
    return prompts;
}

// A device that cannot be opened is a usage error: it says nothing about what the device computes.
std::unique_ptr<Backend> open_named(const std::string& device, const LoadOptions& runtime,
                                    ProgressLine& progress) {
    DeviceOptions options;
    options.threads = runtime.threads;
    options.cache = runtime.cache;
    options.on_progress = [&](const std::string& stage) { progress.show(stage); };
    try {
        return open_device(device, options);
    } catch (const Error& error) {
        throw UsageError(error.what());
    }
}

// Room for the longest prompt, its answer and the tree at the end.
int context_of(const ModelConfig& config, const CompareTask& task) {
    const int most = config.context;
    size_t longest = 0;
    for (const std::vector<int>& prompt : task.prompts) {
        if (prompt.empty()) throw UsageError("a prompt is empty");
        longest = std::max(longest, prompt.size());
    }
    if (longest >= size_t(most))
        throw UsageError("a prompt has " + std::to_string(longest) + " tokens; a context of " +
                         std::to_string(most) + " has no room for it and an answer");
    return int(std::min<size_t>(size_t(most), longest + size_t(task.max_tokens) + 1));
}

// Loads the model on each device, one after the other.
std::vector<std::unique_ptr<ComparedModel>> load(const CompareOptions& options,
                                                 const LoadOptions& runtime,
                                                 ProgressLine& progress) {
    std::vector<std::unique_ptr<Backend>> devices;
    for (const std::string& device : options.devices)
        devices.push_back(open_named(device, runtime, progress));
    std::vector<std::unique_ptr<ComparedModel>> models;
    for (size_t i = 0; i < devices.size(); ++i) {
        progress.show("loading " + runtime.model.string() + " on " + options.devices[i]);
        models.push_back(std::make_unique<ComparedModel>(ModelFiles::open(runtime), runtime,
                                                         std::move(devices[i])));
    }
    return models;
}

std::string piece(const Tokenizer& tokenizer, int id) {
    std::string text;
    append_utf8(text, tokenizer.bytes(id), true);
    return text;
}

void add_pieces(CompareReport& report, const Tokenizer& tokenizer) {
    const Comparison& comparison = report.comparison;
    for (size_t i = 0; i < comparison.prompts.size(); ++i) {
        std::vector<std::string>& pieces = report.pieces.emplace_back();
        for (int id : comparison.prompts[i]) pieces.push_back(piece(tokenizer, id));
        for (int id : report.reference().texts[i].ids) pieces.push_back(piece(tokenizer, id));
        const auto first = std::find_if(pieces.begin(), pieces.end(),
                                        [](const std::string& text) { return !text.empty(); });
        if (tokenizer.drops_leading_space() && first != pieces.end() && first->starts_with(' '))
            first->erase(0, 1);
        std::vector<std::string>& forks = report.fork_pieces.emplace_back();
        for (const ComparedDevice& device : comparison.devices) {
            const std::optional<Fork>& fork = device.texts[i].fork;
            forks.push_back(fork && fork->device >= 0 ? piece(tokenizer, fork->device) : "");
        }
    }
}

CompareReport report_of(Model& model, const CompareOptions& options, Comparison comparison,
                        const Tokenizer& tokenizer) {
    CompareReport report;
    report.model = model.files().target.path.string();
    report.weights = to_string(model.weights());
    report.kv = name(model.options().kv);
    report.max_tokens = options.max_tokens;
    if (comparison.drafts) {
        const TreeShape tree = *model.options().draft.tree;
        report.draft_weights = to_string(model.draft_weights());
        report.tree = format("%d,%d,%d", tree.nodes, tree.levels, tree.top_k);
    }
    report.verdict = judge(comparison);
    report.comparison = std::move(comparison);
    add_pieces(report, tokenizer);
    return report;
}

}  // namespace

int run_compare(const CompareOptions& options) {
    if (options.devices.size() < 2)
        throw UsageError(
            "compare needs two devices: --device cpu --device NAME (see `aerie "
            "devices`)");
    LoadOptions runtime = locate(options.model);
    if (!options.quiet) tell_unused(options.model, runtime.draft.method);
    if (!runtime.draft.tree) runtime.draft.tree = TreeShape{};
    const std::vector<std::string> prompts = read_prompts(options);
    std::optional<ReplacedFile> page;
    if (options.html) page.emplace(*options.html);
    ProgressLine progress(options.quiet);

    const ModelFiles files = ModelFiles::open(runtime);
    const Tokenizer tokenizer = load_tokenizer(files);
    CompareTask task;
    for (const std::string& prompt : prompts)
        task.prompts.push_back(tokenizer.encode_from_start(prompt, Recognised::all));
    task.max_tokens = options.max_tokens;
    task.on_progress = [&](const std::string& stage) { progress.show(stage); };
    task.cancelled = interrupted;
    runtime.context = context_of(files.config, task);
    const auto models = load(options, runtime, progress);
    task.eos_ids = eos_ids(files, tokenizer);
    end_cleanly_on_signals();
    Comparison comparison = compare(models, tokenizer, task);
    progress.clear();
    if (comparison.cancelled) return interrupted();

    const CompareReport report =
        report_of(models[0]->model(), options, std::move(comparison), tokenizer);
    if (page) page->commit(compare_page(report));
    print(options.json ? compare_json(report).dump() + "\n" : compare_table(report));
    return report.verdict.passed() ? 0 : 1;
}

}  // namespace aerie
