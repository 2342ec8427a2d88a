#include "talk/locate.h"

#include <algorithm>
#include <map>
#include <system_error>

#include "core/error.h"
#include "core/platform.h"
#include "core/suggestion.h"
#include "core/utf8.h"
#include "draft/heads/kinds.h"
#include "io/model_folder.h"
#include "io/model_places.h"
#include "io/model_source.h"

namespace fs = std::filesystem;

namespace aerie {

namespace {

// Folders with models: beside the program, beside the library that contains this code, and the
// places where both install them. Last comes `models` in the current folder, which anybody may have
// put there.
std::vector<fs::path> model_roots(std::span<const fs::path> first) {
    std::vector<fs::path> roots(first.begin(), first.end());
    if (const fs::path program = platform::program(); !program.empty()) {
        roots.push_back(program.parent_path() / "models");
        roots.push_back(program.parent_path().parent_path() / "share" / "aerie" / "models");
    }
    if (const fs::path library = platform::library(); !library.empty()) {
        roots.push_back(library.parent_path() / "models");
        roots.push_back((library.parent_path() / AERIE_MODELS_FROM_LIBRARY).lexically_normal());
    }
    roots.emplace_back(AERIE_INSTALLED_MODELS);
    roots.emplace_back("models");
    return roots;
}

// The model of this name in one of the folders; empty if there is none.
fs::path bundled_model(const fs::path& name, std::span<const fs::path> folders) {
    fs::path file = name;
    file += ".gguf";
    std::error_code ignored;
    for (const fs::path& root : model_roots(folders)) {
        if (fs::is_directory(root / name, ignored)) return root / name;
        if (fs::is_regular_file(root / file, ignored)) return root / file;
    }
    return {};
}

// Whether `aerie train` works in this folder and has not written a head into it yet.
bool is_in_training(const fs::path& folder) {
    std::error_code ignored;
    return fs::is_directory(folder / "training", ignored) && !is_in_folder(folder, "config.json");
}

// Existing heads beside the target MODEL or MODEL.gguf: "MODEL-eagle" and similar names, as a
// folder or a .gguf file. Names that suit the method come first.
std::vector<fs::path> heads_beside(const fs::path& model,
                                   const std::optional<std::string>& method) {
    fs::path target_path = model.lexically_normal();
    if (is_gguf(target_path)) target_path.replace_extension();
    if (!target_path.has_filename()) target_path = target_path.parent_path();
    std::vector<std::string> endings;
    if (method) endings = draft_method(*method).beside;
    if (endings.empty())
        for (const DraftHead& head : draft_heads()) endings.push_back(head.ending);
    std::vector<fs::path> heads;
    std::error_code ignored;
    for (const std::string& ending : endings) {
        fs::path beside = target_path;
        beside += ending;
        const bool is_folder = fs::is_directory(beside, ignored);
        if (!is_folder) beside += ".gguf";
        if (is_folder ? !is_in_training(beside) : fs::is_regular_file(beside, ignored))
            heads.push_back(beside);
    }
    return heads;
}

// Whether a name that is no path may be that of another program's model: "ORG/NAME:QUANT",
// "NAME:TAG".
bool may_be_placed(const std::string& name) {
    return !name.starts_with('.') && !name.starts_with('/') && !name.starts_with('~') &&
           std::count(name.begin(), name.end(), '/') <= 1 && !name.ends_with('/');
}

// The error message for a missing head, with the kind of head that the method needs and the flag.
std::string missing_for(const DraftMethod& method) {
    return "--draft " + method.name + " needs " +
           (method.needs == DraftNeeds::head ? method.wants + ": --head FOLDER"
                                             : "a smaller model of the same tokens: -md MODEL");
}

}  // namespace

// A plain name means a bundled model before a path; ./NAME or a longer path always means a path.
fs::path find_model(const std::string& name, std::span<const fs::path> folders) {
    if (name.empty()) throw UsageError("the model's name is empty");
    if (!is_utf8(name)) throw UsageError(in_quotes(name) + ": a model's name is UTF-8");
    const fs::path path = platform::path_of(name);
    std::error_code ignored, unseen;
    const bool is_plain =
        !path.has_parent_path() && path.has_filename() && name != "." && name != "..";
    if (const fs::path found = is_plain ? bundled_model(path, folders) : fs::path(); !found.empty())
        return found;
    if (fs::is_directory(path, ignored)) {
        if (is_in_folder(path, "config.json")) return path;
        const fs::path only = only_gguf_in(path);
        return only.empty() ? path : only;
    }
    if (fs::exists(path, unseen)) {
        if (!is_gguf(path))
            throw Error(in_quotes(name) + ": " + what_it_is_instead(path), Cause::unsupported);
        return path;
    }
    const bool is_path = path.extension() == ".gguf" || !may_be_placed(name);
    if (const fs::path found = is_path ? fs::path() : find_placed_model(name); !found.empty())
        return found;
    if (unseen) throw Error(in_quotes(name) + ": " + unseen.message(), Cause::inaccessible);
    if (is_path) throw Error(in_quotes(name) + ": no such file or folder", Cause::not_found);
    if (name.find('/') != std::string::npos) {
        const RepositoryName wanted = parse_repository_name(name);
        throw Error(
            in_quotes(name) + ": no such folder, and not in the Hugging Face cache (" +
                repository_in_cache(hugging_face_cache(), wanted.org, wanted.name).string() +
                "); to download it: aerie pull " + name,
            Cause::not_found);
    }
    std::vector<std::string> names;
    for (const ModelAtHand& one : models_at_hand(folders)) names.push_back(one.model.name);
    throw Error(
        in_quotes(name) +
            ": no such file or folder, and no model of that name is on this machine ('aerie "
            "models' lists them, 'aerie pull ORG/NAME' downloads one)" +
            suggestion(name, names),
        Cause::not_found);
}

fs::path find_beside_models(const std::string& file, std::span<const fs::path> folders) {
    std::error_code ignored;
    for (const fs::path& root : model_roots(folders))
        if (fs::is_regular_file(root / file, ignored)) return root / file;
    return {};
}

std::vector<ModelAtHand> models_at_hand(std::span<const fs::path> folders) {
    std::map<std::string, fs::path> own;
    const auto is_head = [](const std::string& name) {
        return std::any_of(draft_heads().begin(), draft_heads().end(), [&](const DraftHead& head) {
            return !head.ending.empty() && name.ends_with(head.ending);
        });
    };
    for (const fs::path& root : model_roots(folders))
        platform::each_entry(root, [&](const fs::path& entry) {
            const bool is_file = entry.extension() == ".gguf";
            const std::string name = (is_file ? entry.stem() : entry).string();
            if ((is_file || is_in_folder(root / entry, "config.json")) && !is_head(name))
                own.emplace(name, root / entry);
        });
    std::vector<ModelAtHand> all;
    for (const auto& [name, path] : own)
        all.push_back({{name, path, "aerie", weight_bytes_of(path)}, {}});
    for (PlacedModel& model : placed_models()) all.push_back({std::move(model), {}});
    for (ModelAtHand& one : all)
        for (const fs::path& head : heads_beside(one.model.path, {}))
            one.heads.push_back(one.model.program == "aerie" ? head.stem().string()
                                                             : head.string());
    return all;
}

void locate(const WantedModel& wanted, LoadOptions& options) {
    options.model = find_model(wanted.model, wanted.folders);
    std::vector<fs::path> heads;
    if (wanted.head)
        heads.push_back(find_model(*wanted.head, wanted.folders));
    else
        heads = heads_beside(options.model, wanted.draft);
    options.head = heads.empty() ? fs::path() : heads[0];
    // A head that is not needed is not opened, so its errors do not matter.
    const auto kind = [&] { return heads.empty() ? nullptr : &head_kind(options.head); };
    const DraftMethod& method =
        wanted.draft ? draft_method(*wanted.draft) : default_draft_method(kind(), options.draft);
    options.draft.method = method.name;
    if (method.needs == DraftNeeds::what_there_is) {
        if (!heads.empty()) options.more_heads.assign(heads.begin() + 1, heads.end());
    } else if (method.needs != DraftNeeds::nothing && heads.empty()) {
        throw UsageError(missing_for(method));
    }
}

fs::path default_cache() {
    const fs::path cache = platform::cache_folder();
    return cache.empty() ? cache : cache / "aerie";
}

}  // namespace aerie
