// Settles what flags leave open, by the environment and by defaults.
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "hub.h"
#include "talk/locate.h"

namespace fs = std::filesystem;

namespace aerie {

namespace {

// The variable's value; unset and empty are the same.
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

std::string model_name(const std::optional<std::string>& name) {
    return name ? *name : variable("AERIE_MODEL").value_or(kDefaultModel);
}

// The path of a model of the hub, which is downloaded if need be; other names as they are.
std::string fetched(const std::string& name, bool offline = false) {
    return is_of_hub(name) ? fetch_from_hub(name, offline).string() : name;
}

}  // namespace

std::vector<fs::path> model_folders() {
    const auto models = variable("AERIE_MODELS");
    return models ? std::vector<fs::path>{*models} : std::vector<fs::path>{};
}

fs::path find_acceptance() {
    constexpr const char* kName = "acceptance.txt";
    std::vector<fs::path> folders;
    std::error_code ignored;
    if (const fs::path program = platform::program(); !program.empty()) {
        folders.push_back(program.parent_path().parent_path() / "share" / "aerie");
        folders.push_back(program.parent_path());  // as in a build folder
    }
    for (const fs::path& folder : folders)
        if (fs::exists(folder / kName, ignored)) return folder / kName;
    throw Error((folders.empty() ? fs::path(kName) : folders.front() / kName).string() +
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
    runtime.cache = default_cache();
    runtime.draft.method =
        draft_method(options.draft.value_or(draft_heads().front().method.name)).name;
    return runtime;
}

fs::path locate_model(const std::optional<std::string>& name) {
    return find_model(fetched(model_name(name)), model_folders());
}

LoadOptions locate(const ModelOptions& options) {
    LoadOptions runtime = locate_nothing(options);
    std::optional<std::string> head = options.head ? options.head : variable("AERIE_HEAD");
    if (head) head = fetched(*head, options.offline);
    locate({.model = fetched(model_name(options.model), options.offline),
            .head = head,
            .draft = options.draft,
            .folders = model_folders()},
           runtime);
    return runtime;
}

}  // namespace aerie
