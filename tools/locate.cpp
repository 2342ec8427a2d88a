// Where models are found: a path, a bundled model, the Hugging Face cache.
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "commands.h"
#include "core/error.h"

namespace fs = std::filesystem;

namespace aerie {

namespace {

std::vector<fs::path> model_roots() {
    std::vector<fs::path> roots;
    if (const char* models = std::getenv("AERIE_MODELS"); models && *models)
        roots.emplace_back(models);
    roots.emplace_back("models");
    std::error_code ignored;
    if (const fs::path program = fs::read_symlink("/proc/self/exe", ignored); !program.empty()) {
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
    if (!fs::is_directory(name, ignored) && name.find('/') == std::string::npos)
        for (const fs::path& root : model_roots())
            if (fs::is_directory(root / name, ignored)) return root / name;
    return resolve_model_folder(name);
}

DraftKind kind_of(const std::string& name) {
    if (name == "chain") return DraftKind::chain;
    if (name == "eagle1") return DraftKind::eagle1;
    if (name == "eagle2") return DraftKind::eagle2;
    return DraftKind::none;
}

}  // namespace

RuntimeOptions locate(const ModelOptions& options) {
    RuntimeOptions runtime;
    runtime.device = options.device;
    runtime.threads = options.threads;
    runtime.context = options.context;
    runtime.weights = options.weights;
    runtime.draft_weights = options.draft_weights;
    runtime.kv = options.kv;
    runtime.draft = options.drafting;
    runtime.model = find_model(options.model);

    const std::string target = runtime.model.lexically_normal().string();
    const fs::path beside = fs::path(target.substr(0, target.find_last_not_of('/') + 1) + "-eagle");
    std::error_code ignored;
    if (!options.head.empty())
        runtime.head = find_model(options.head);
    else if (fs::is_directory(beside, ignored))
        runtime.head = beside;

    if (options.draft.empty())
        runtime.draft.kind = runtime.head.empty() ? DraftKind::none : DraftKind::eagle2;
    else
        runtime.draft.kind = kind_of(options.draft);
    if (runtime.draft.kind != DraftKind::none && runtime.head.empty())
        throw UsageError("--draft " + options.draft + " needs an EAGLE head: --head FOLDER");
    return runtime;
}

}  // namespace aerie
