#include "io/cached_model.h"

#include <set>
#include <system_error>

#include "core/ascii.h"
#include "core/error.h"
#include "core/platform.h"
#include "core/utf8.h"
#include "io/model_folder.h"
#include "io/model_places.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

// The blob that an entry of a snapshot links to; empty if the entry is the file itself.
fs::path blob_of(const fs::path& repository, const fs::path& entry) {
    std::error_code error;
    const fs::path target = fs::read_symlink(entry, error);
    return error ? fs::path() : repository / "blobs" / target.filename();
}

std::vector<fs::path> snapshots_of(const fs::path& repository) {
    std::vector<fs::path> snapshots;
    if (repository.empty()) return snapshots;
    platform::each_entry(repository / "snapshots", [&](const fs::path& entry) {
        snapshots.push_back(repository / "snapshots" / entry);
    });
    return snapshots;
}

// Whether the file belongs to the wanted model; each file does if neither a quantisation nor a file
// is named.
class Wanted {
  public:
    Wanted(const std::vector<RepositoryFile>& files, const RepositoryName& name)
        : is_all_(name.quant.empty() && name.file.empty()) {
        if (is_all_) return;
        for (const GgufModel& model : gguf_models_of(files))
            if (name.file.empty() ? lower_ascii(model.quant) == lower_ascii(name.quant)
                                  : has_file(model, name.file))
                for (const RepositoryFile& file : model.files) paths_.insert(file.path);
    }
    bool has(const std::string& path) const { return is_all_ || paths_.contains(path); }

  private:
    static bool has_file(const GgufModel& model, const std::string& path) {
        return std::any_of(model.files.begin(), model.files.end(),
                           [&](const RepositoryFile& file) { return file.path == path; });
    }

    const bool is_all_;
    std::set<std::string> paths_;
};

}  // namespace

CachedModel find_cached_model(const RepositoryName& name) {
    CachedModel model;
    model.repository = repository_in_cache(hugging_face_cache(), name.org, name.name);
    std::set<fs::path> blobs, kept_blobs;
    model.is_all = true;
    for (const fs::path& snapshot : snapshots_of(model.repository)) {
        const std::vector<RepositoryFile> files = files_in(snapshot);
        const Wanted wanted(files, name);
        for (const RepositoryFile& file : files) {
            const fs::path entry = snapshot / file.path;
            const fs::path blob = blob_of(model.repository, entry);
            const bool goes = wanted.has(file.path);
            model.is_all = model.is_all && goes;
            if (!blob.empty()) (goes ? blobs : kept_blobs).insert(blob);
            if (!goes) continue;
            model.files.push_back(entry);
            if (blob.empty()) model.size_bytes += bytes_of(entry);
        }
    }
    if (model.files.empty())
        throw Error(name.id() + (name.quant.empty() ? "" : ":" + name.quant) +
                    (name.file.empty() ? "" : ": " + in_quotes(name.file)) +
                    ": not in the Hugging Face cache (" + model.repository.string() +
                    "); models of other programs are deleted by these");
    // A download that has begun is of another model, or it is not known of which.
    if (model.is_all && !(name.quant.empty() && name.file.empty()))
        platform::each_entry(model.repository / "blobs", [&](const fs::path& entry) {
            if (entry.extension() == ".incomplete") model.is_all = false;
        });
    for (const fs::path& blob : blobs)
        if (!kept_blobs.contains(blob)) {
            model.files.push_back(blob);
            model.size_bytes += bytes_of(blob);
        }
    return model;
}

void delete_cached_model(const CachedModel& model) {
    std::error_code error;
    if (model.is_all) {
        fs::remove_all(model.repository, error);
        if (error) throw Error(model.repository.string() + ": " + error.message());
        return;
    }
    for (const fs::path& file : model.files)
        if (!fs::remove(file, error) && error) throw Error(file.string() + ": " + error.message());
}

}  // namespace aerie
