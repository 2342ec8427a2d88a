// Where models are found: a path, a bundled model, the Hugging Face cache.
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "core/utf8.h"
#include "io/model_folder.h"
#include "io/model_source.h"
#include "model/heads.h"

namespace fs = std::filesystem;

namespace aerie {

namespace {

std::vector<fs::path> model_roots() {
    std::vector<fs::path> roots;
    if (const char* models = std::getenv("AERIE_MODELS"); models && *models)
        roots.emplace_back(models);
    roots.emplace_back("models");
    std::error_code ignored;
    if (const fs::path program = platform::program(); !program.empty()) {
        roots.push_back(program.parent_path() / "models");
        roots.push_back(program.parent_path().parent_path() / "share" / "aerie" / "models");
    }
    roots.emplace_back(AERIE_SOURCE_MODELS);
    return roots;
}

// A plain name may be that of a bundled model; everything else is a path or org/name.
fs::path find_model(const std::string& name) {
    if (name.empty()) throw UsageError("the model's name is empty");
    std::error_code ignored;
    if (fs::exists(name, ignored) && !fs::is_directory(name, ignored)) {
        if (!is_gguf(name)) throw Error(in_quotes(name) + ": neither a folder nor a .gguf file");
        return name;
    }
    if (fs::is_directory(name, ignored) || name.find('/') != std::string::npos)
        return resolve_model_folder(name);
    for (const fs::path& root : model_roots())
        if (fs::is_directory(root / name, ignored)) return root / name;
    throw Error(in_quotes(name) + ": neither a folder nor a bundled model");
}

// Unset and empty are the same.
std::optional<std::string> variable(const char* name) {
    const char* value = std::getenv(name);
    if (!value || !*value) return {};
    return value;
}

int threads_of(const ModelOptions& options) {
    if (options.threads) return *options.threads;
    const std::string text = variable("AERIE_THREADS").value_or("0");
    int threads = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
    if (error != std::errc() || *rest != 0 || threads < 0 || threads > kMaxThreads)
        throw UsageError("AERIE_THREADS=" + text + ": expected a whole number from 1 to " +
                         std::to_string(kMaxThreads));
    return threads;
}

// Ours in the user's; empty where that is not known.
fs::path cache_folder() {
    const fs::path cache = platform::cache_folder();
    return cache.empty() ? cache : cache / "aerie";
}

// "MODEL-eagle", "MODEL-eagle3" or "MODEL-draft" beside the target, MODEL or MODEL.gguf, a folder
// or a .gguf file itself, if it is there: the first that the method may be meant for.
fs::path head_beside(const fs::path& model, const std::optional<std::string>& method) {
    fs::path target_path = model.lexically_normal();
    if (is_gguf(target_path)) target_path.replace_extension();
    const std::string target = target_path.string();
    const std::string stem = target.substr(0, target.find_last_not_of('/') + 1);
    std::vector<std::string> endings = {"-eagle", "-eagle3", "-draft"};
    if (method == "model") endings = {"-draft"};
    if (method == "eagle3") endings = {"-eagle3"};
    if (method == "eagle2") endings = {"-eagle"};
    if (method == "eagle1") endings = {"-eagle", "-eagle3"};
    std::error_code ignored;
    for (const std::string& ending : endings) {
        if (fs::is_directory(stem + ending, ignored)) return stem + ending;
        const fs::path file = stem + ending + ".gguf";
        if (fs::is_regular_file(file, ignored)) return file;
    }
    return {};
}

// What there must be for it, and the flag that names it.
std::string missing_for(const DraftMethod& method) {
    return "--draft " + method.name + " needs " +
           (method.needs == DraftNeeds::head ? "an EAGLE head: --head FOLDER"
                                             : "a smaller model of the same tokens: -md MODEL");
}

}  // namespace

fs::path find_acceptance() {
    constexpr const char* kName = "acceptance.txt";
    std::vector<fs::path> folders;
    std::error_code ignored;
    if (const fs::path program = platform::program(); !program.empty())
        folders.push_back(program.parent_path().parent_path() / "share" / "aerie");
    folders.emplace_back(AERIE_SOURCE_BENCH_DATA);
    for (const fs::path& folder : folders)
        if (fs::exists(folder / kName, ignored)) return folder / kName;
    throw Error((folders.front() / kName).string() +
                ": missing; without it only --draft none can be measured");
}

LoadOptions locate_nothing(const ModelOptions& options) {
    LoadOptions runtime;
    runtime.device = options.device ? *options.device : variable("AERIE_DEVICE").value_or("");
    runtime.threads = threads_of(options);
    runtime.context = options.context.value_or(0);
    runtime.weights = options.weights;
    runtime.draft_weights = options.draft_weights;
    runtime.kv = options.kv;
    runtime.profile = options.profile;
    runtime.draft = options.drafting;
    runtime.head_options = options.head_options;
    runtime.cache = cache_folder();
    runtime.draft.method = options.draft.value_or(default_draft_method(HeadKind::eagle).name);
    return runtime;
}

fs::path locate_model(const std::optional<std::string>& name) {
    return find_model(name ? *name : variable("AERIE_MODEL").value_or("aerie-tiny"));
}

LoadOptions locate(const ModelOptions& options) {
    LoadOptions runtime = locate_nothing(options);
    runtime.model = locate_model(options.model);
    const auto head = options.head ? options.head : variable("AERIE_HEAD");
    runtime.head = head ? find_model(*head) : head_beside(runtime.model, options.draft);
    const HeadKind kind = runtime.head.empty() ? HeadKind::none : head_kind(runtime.head);
    runtime.draft.method = options.draft.value_or(default_draft_method(kind).name);
    const DraftMethod& method = draft_method(runtime.draft.method);
    if (method.needs != DraftNeeds::nothing && kind == HeadKind::none)
        throw UsageError(missing_for(method));
    return runtime;
}

}  // namespace aerie
