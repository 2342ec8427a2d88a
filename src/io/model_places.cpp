#include "io/model_places.h"

#include <algorithm>
#include <system_error>

#include "core/error.h"
#include "core/platform.h"
#include "io/input_file.h"
#include "io/json.h"
#include "io/model_folder.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostEntries = 10'000;  // read of one folder

// The entries of a folder, by name; none if it cannot be read.
std::vector<fs::path> entries_of(const fs::path& folder) {
    std::vector<fs::path> names;
    platform::each_entry(folder, [&](const fs::path& name) {
        if (names.size() < kMostEntries) names.push_back(name);
    });
    std::sort(names.begin(), names.end());
    return names;
}

bool is_folder(const fs::path& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
}

bool is_file(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored);
}

void add_file(std::vector<RepositoryFile>& files, const std::string& path) {
    files.emplace_back();
    files.back().path = path;
}

// Adds the files of a folder and of the folders in it, as a repository lists them. Sizes and hashes
// are not known. Links to folders are not followed, so that it ends.
void add_files(std::vector<RepositoryFile>& files, const fs::path& folder,
               const std::string& prefix) {
    for (const fs::path& entry : entries_of(folder)) {
        const std::string name = prefix + entry.string();
        if (files.size() >= kMostEntries) return;
        if (is_file(folder / entry)) {
            add_file(files, name);
        } else if (std::error_code ignored; !fs::is_symlink(folder / entry, ignored)) {
            add_files(files, folder / entry, name + "/");
        }
    }
}

// The model that a folder with the files of a repository holds.
fs::path model_in(const fs::path& folder, const RepositoryName& name) {
    const ModelFilesChoice choice = choose_model(files_in(folder), name);
    return choice.is_gguf ? folder / choice.files.front().path : folder;
}

fs::path hugging_face_snapshot(const RepositoryName& name) {
    return cached_snapshot(repository_in_cache(hugging_face_cache(), name.org, name.name));
}

uint64_t bytes_of_all(const fs::path& folder, const std::vector<RepositoryFile>& files) {
    uint64_t bytes = 0;
    for (const RepositoryFile& file : files) bytes += bytes_of(folder / file.path);
    return bytes;
}

// Adds the models of such a folder.
void add_models(std::vector<PlacedModel>& all, const fs::path& folder, const std::string& id,
                const char* program) {
    const std::vector<RepositoryFile> files = files_in(folder);
    const std::vector<GgufModel> models = gguf_models_of(files);
    for (const GgufModel& model : models)
        all.push_back({models.size() == 1 ? id : id + ":" + model.quant,
                       folder / model.files.front().path, program,
                       bytes_of_all(folder, model.files)});
    if (!models.empty()) return;
    try {
        choose_model(files, parse_repository_name(id));
        all.push_back({id, folder, program, weight_bytes_of(folder)});
    } catch (const Error&) {
        // data, images, a model of another form
    }
}

// LM Studio's folders, the newer first: ORG/NAME with the files of the repository.
std::vector<fs::path> lm_studio_folders() {
    const fs::path home = platform::home_folder();
    if (home.empty()) return {};
    return {home / ".lmstudio" / "models", home / ".cache" / "lm-studio" / "models"};
}

// The folder in which llama.cpp kept its downloads until it took Hugging Face's cache:
// ORG_NAME_FILE.gguf.
fs::path llama_cpp_folder() {
    if (const fs::path folder = platform::path_variable("LLAMA_CACHE"); !folder.empty())
        return folder;
    const fs::path cache = platform::cache_folder();
    return cache.empty() ? cache : cache / "llama.cpp";
}

// The files of one repository there, by the names that they have in the repository.
std::vector<RepositoryFile> llama_cpp_files(const fs::path& folder, const std::string& prefix) {
    std::vector<RepositoryFile> files;
    for (const fs::path& entry : entries_of(folder)) {
        const std::string name = entry.string();
        if (!name.starts_with(prefix) || !is_file(folder / entry)) continue;
        RepositoryFile file;
        file.path = name.substr(prefix.size());
        files.push_back(std::move(file));
    }
    return files;
}

std::vector<fs::path> ollama_folders() {
    if (const fs::path folder = platform::path_variable("OLLAMA_MODELS"); !folder.empty())
        return {folder};
    std::vector<fs::path> folders;
    if (const fs::path home = platform::home_folder(); !home.empty())
        folders.push_back(home / ".ollama" / "models");
    folders.emplace_back("/usr/share/ollama/.ollama/models");  // its service on Linux
    return folders;
}

// The GGUF file that a manifest of Ollama names: a JSON file with layers, of which one is the
// model. Empty if it names none that is there.
fs::path ollama_blob(const fs::path& folder, const fs::path& manifest) {
    constexpr size_t kMaxManifestBytes = 1 << 20;
    constexpr std::string_view kHash = "sha256:";
    try {
        const Json json = Json::parse(read_text(manifest, kMaxManifestBytes), manifest.string());
        const Json* layers = json.find("layers");
        if (!layers || !layers->array()) return {};
        for (const Json& layer : *layers->array()) {
            const Json *type = layer.find("mediaType"), *digest = layer.find("digest");
            if (!type || !type->string() || !digest || !digest->string()) continue;
            const std::string& hash = *digest->string();
            if (*type->string() != "application/vnd.ollama.image.model") continue;
            if (!hash.starts_with(kHash) || !is_plain_name(hash.substr(kHash.size()))) continue;
            const fs::path blob = folder / "blobs" / ("sha256-" + hash.substr(kHash.size()));
            if (is_file(blob)) return blob;
        }
    } catch (const Error&) {
        // no manifest
    }
    return {};
}

// Manifests lie at HOST/OWNER/NAME/TAG; Ollama's own library needs neither host nor owner.
constexpr const char *kOllamaHost = "registry.ollama.ai", *kOllamaOwner = "library";

// "llama3.2" or "llama3.2:3b". Empty if Ollama has none of that name.
fs::path find_ollama_model(const std::string& text) {
    const size_t colon = text.find(':');
    const std::string name = text.substr(0, colon);
    const std::string tag = colon == text.npos ? "latest" : text.substr(colon + 1);
    if (!is_plain_name(name) || !is_plain_name(tag)) return {};
    for (const fs::path& folder : ollama_folders()) {
        const fs::path manifest = folder / "manifests" / kOllamaHost / kOllamaOwner / name / tag;
        if (!is_file(manifest)) continue;
        if (const fs::path blob = ollama_blob(folder, manifest); !blob.empty()) return blob;
    }
    return {};
}

void add_ollama_models(std::vector<PlacedModel>& all, const fs::path& folder) {
    const fs::path library = folder / "manifests" / kOllamaHost / kOllamaOwner;
    for (const fs::path& name : entries_of(library))
        for (const fs::path& tag : entries_of(library / name))
            if (const fs::path blob = ollama_blob(folder, library / name / tag); !blob.empty())
                all.push_back({name.string() + (tag == "latest" ? "" : ":" + tag.string()), blob,
                               "Ollama", bytes_of(blob)});
}

void add_hugging_face_models(std::vector<PlacedModel>& all, const fs::path& cache) {
    constexpr std::string_view kPrefix = "models--", kBetween = "--";
    for (const fs::path& entry : entries_of(cache)) {
        const std::string folder = entry.string();
        const size_t slash = folder.find(kBetween, kPrefix.size());
        if (!folder.starts_with(kPrefix) || slash == folder.npos) continue;
        const std::string id = folder.substr(kPrefix.size(), slash - kPrefix.size()) + "/" +
                               folder.substr(slash + kBetween.size());
        try {
            const fs::path snapshot = cached_snapshot(cache / entry);
            if (!snapshot.empty()) add_models(all, snapshot, id, "Hugging Face");
        } catch (const Error&) {
            // a damaged refs/main
        }
    }
}

}  // namespace

uint64_t bytes_of(const fs::path& file) {
    std::error_code error;
    const uint64_t bytes = fs::file_size(file, error);
    return error ? 0 : bytes;
}

std::vector<RepositoryFile> files_in(const fs::path& folder) {
    std::vector<RepositoryFile> files;
    add_files(files, folder, "");
    return files;
}

std::vector<PlacedModel> placed_models() {
    std::vector<PlacedModel> all;
    add_hugging_face_models(all, hugging_face_cache());
    for (const fs::path& folder : lm_studio_folders())
        for (const fs::path& org : entries_of(folder))
            for (const fs::path& name : entries_of(folder / org))
                add_models(all, folder / org / name, org.string() + "/" + name.string(),
                           "LM Studio");
    const fs::path flat = llama_cpp_folder();
    for (const GgufModel& model : gguf_models_of(llama_cpp_files(flat, "")))
        all.push_back({(flat / model.files.front().path).string(), flat / model.files.front().path,
                       "llama.cpp", bytes_of_all(flat, model.files)});
    for (const fs::path& folder : ollama_folders()) add_ollama_models(all, folder);
    return all;
}

fs::path find_in_hugging_face_cache(const RepositoryName& name) {
    try {
        const fs::path snapshot = hugging_face_snapshot(name);
        return snapshot.empty() ? snapshot : model_in(snapshot, name);
    } catch (const Error&) {
        return {};  // other files of the repository, or a damaged refs/main
    }
}

fs::path find_placed_model(const std::string& text) {
    if (text.find('/') == text.npos) return find_ollama_model(text);
    const RepositoryName name = parse_repository_name(text);
    if (const fs::path cached = hugging_face_snapshot(name); !cached.empty())
        return model_in(cached, name);
    for (const fs::path& folder : lm_studio_folders())
        if (is_folder(folder / name.org / name.name))
            return model_in(folder / name.org / name.name, name);
    const std::string prefix = name.org + "_" + name.name + "_";
    const std::vector<RepositoryFile> files = llama_cpp_files(llama_cpp_folder(), prefix);
    if (gguf_models_of(files).empty()) return {};
    return llama_cpp_folder() / (prefix + choose_model(files, name).files.front().path);
}

uint64_t weight_bytes_of(const fs::path& model) {
    if (!is_folder(model)) {
        for (const GgufModel& other : gguf_models_of(files_in(model.parent_path())))
            if (other.files.front().path == model.filename())
                return bytes_of_all(model.parent_path(), other.files);
        return bytes_of(model);
    }
    uint64_t bytes = 0;
    for (const fs::path& name : entries_of(model))
        if (const fs::path ending = name.extension();
            ending == ".safetensors" || ending == ".bin" || ending == ".pt")
            bytes += bytes_of(model / name);
    return bytes;
}

fs::path only_gguf_in(const fs::path& folder) {
    std::vector<RepositoryFile> files, deeper;
    for (const fs::path& entry : entries_of(folder)) {
        if (is_file(folder / entry)) {
            add_file(files, entry.string());
            continue;
        }
        for (const fs::path& inner : entries_of(folder / entry))
            if (is_file(folder / entry / inner)) add_file(deeper, (entry / inner).string());
    }
    std::vector<GgufModel> models = gguf_models_of(files);
    if (models.empty()) models = gguf_models_of(deeper);
    if (models.empty()) return {};
    if (models.size() == 1) return folder / models.front().files.front().path;
    std::string names;
    for (const GgufModel& model : models)
        names += (names.empty() ? "" : ", ") + model.files.front().path;
    throw Error(folder.string() + ": holds several models: " + names);
}

}  // namespace aerie
