// Settles what flags leave open, by the environment and by defaults.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "hub.h"
#include "talk/known_heads.h"
#include "talk/locate.h"
#include "terminal.h"

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
    const std::string text = variable("AERIE_THREADS").value_or("");
    if (text.empty()) return 0;
    int threads = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
    if (error != std::errc() || *rest != 0 || threads < 1 || threads > kMaxThreads)
        throw UsageError("AERIE_THREADS=" + text + ": expected a whole number from 1 to " +
                         std::to_string(kMaxThreads));
    return threads;
}

std::string model_name(const std::optional<std::string>& name) {
    return name ? *name : variable("AERIE_MODEL").value_or(kDefaultModel);
}

// The path of a model of the hub, which is downloaded if need be; other names as they are.
std::string fetched(const std::string& name, bool offline = false) {
    std::error_code ignored;
    return is_of_hub(name) && !fs::exists(name, ignored) ? fetch_from_hub(name, offline).string()
                                                         : name;
}

// The path of the head that is known for a model of the hub. It is downloaded if the model's name
// asked for downloads ("hf:"), else taken from the cache; a head that does not come is no error.
std::optional<std::string> known_head(const std::string& model, bool offline) {
    const bool may_download = is_of_hub(model);
    std::error_code ignored;
    if (!may_download && (std::count(model.begin(), model.end(), '/') != 1 ||
                          model.ends_with(".gguf") || fs::exists(model, ignored)))
        return {};
    const auto known = known_head_for(model, read_known_heads(model_folders()));
    if (!known) return {};
    const std::string name = "hf:" + known->head.id();
    fs::path path = find_in_hugging_face_cache(known->head);
    try {
        if (path.empty() && may_download && !offline) {
            print_note("(" + name + " is a head for this model; --draft lookup goes without it)");
            path = fetch_from_hub(name, offline);
        }
    } catch (const Error& error) {
        print_note(std::string("(without a head: ") + error.what() + ")");
    }
    if (path.empty()) return {};
    if (!has_known_weights(*known, path))
        print_note("(" + name + " has other weights than models/heads.json knows)");
    return path.string();
}

// Whether a flag makes sense with a head alone.
bool asks_for_head(const ModelOptions& options) {
    const HeadOptions& head = options.head_options;
    return (options.draft && draft_method(*options.draft).needs != DraftNeeds::what_there_is) ||
           !head.taps.empty() || head.theta || head.vocab > 0 || !head.token_counts.empty() ||
           options.draft_weights;
}

// Whether a head could be used that is not named.
bool may_have_head(const std::optional<std::string>& draft) {
    return !draft || draft_method(*draft).needs == DraftNeeds::head ||
           draft_method(*draft).needs == DraftNeeds::what_there_is;
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

namespace {

// Throws UsageError if two flags fix the trees.
void check_one_tree(const DraftOptions& options) {
    const char* const other = options.static_tree    ? "--tree-file"
                              : options.chain_length ? "--chain-length"
                              : options.lookahead    ? "--lookahead"
                                                     : nullptr;
    if (other && options.is_published)
        throw UsageError(std::string("--tree published and ") + other +
                         " both fix the trees; give one");
    if (options.tree && options.static_tree)
        throw UsageError("--tree N,L,K and --tree-file both fix the trees; give one");
}

}  // namespace

LoadOptions locate_nothing(const ModelOptions& options) {
    check_one_tree(options.drafting);
    LoadOptions runtime;
    runtime.device = options.device ? *options.device : variable("AERIE_DEVICE").value_or("");
    runtime.threads = threads_of(options);
    runtime.context = options.context.value_or(0) > 0 ? *options.context : kFittingContext;
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
    const std::string name = model_name(options.model);
    const std::string model = fetched(name, options.offline);
    const bool is_found = !head && may_have_head(options.draft);
    if (is_found) head = known_head(name, options.offline);
    const WantedModel wanted{
        .model = model, .head = head, .draft = options.draft, .folders = model_folders()};
    if (!is_found || !head || asks_for_head(options)) {
        locate(wanted, runtime);
        return runtime;
    }
    // Nobody asked for this head: one that does not fit is left out.
    LoadOptions without = runtime;
    try {
        locate(wanted, runtime);
        ModelFiles::open(runtime);
        runtime.on_unfit_head = [](const std::string& reason) {
            print_note("(without a head: " + reason + ")");
        };
        return runtime;
    } catch (const Error& error) {
        WantedModel alone = wanted;
        alone.head.reset();
        locate(alone, without);
        ModelFiles::open(without);  // reports what is wrong with the model itself
        print_note(std::string("(without a head: ") + error.what() + ")");
        return without;
    }
}

}  // namespace aerie
