// Model folders: given as they are, or found in the Hugging Face cache.
#include "io/model_folder.h"

#include <algorithm>
#include <system_error>

#include "core/error.h"
#include "core/platform.h"
#include "core/utf8.h"
#include "io/input_file.h"

namespace aerie {
namespace {

namespace fs = std::filesystem;

fs::path resolved(const fs::path& path) {
    std::error_code error;
    const fs::path real = fs::canonical(path, error);
    if (error)  // the system's own text may be in a code page
        throw Error(
            path.string() + ": " + error.default_error_condition().message(),
            error == std::errc::no_such_file_or_directory ? Cause::not_found : Cause::inaccessible);
    return real;
}

// The Hugging Face cache's own links: snapshots/<commit>/<name> to blobs/<hash>.
bool is_cache_link(const fs::path& folder, const fs::path& file) {
    const fs::path repository = folder.parent_path().parent_path();
    return folder.parent_path().filename() == "snapshots" &&
           repository.filename().string().starts_with("models--") &&
           file.parent_path() == repository / "blobs";
}

}  // namespace

bool is_plain_name(const std::string& name) {
    return !name.empty() && name.size() <= 255 && name != "." && name != ".." && is_utf8(name) &&
           std::none_of(name.begin(), name.end(), [](unsigned char c) {
               return c < 0x20 || c == 0x7F || c == '/' || c == '\\' || c == ':';
           });
}

fs::path hugging_face_home() {
    if (const fs::path home = platform::path_variable("HF_HOME"); !home.empty()) return home;
    const fs::path home = platform::home_folder();
    return home.empty() ? home : home / ".cache" / "huggingface";
}

fs::path hugging_face_cache() {
    if (const fs::path cache = platform::path_variable("HF_HUB_CACHE"); !cache.empty())
        return cache;
    const fs::path home = hugging_face_home();
    return home.empty() ? home : home / "hub";
}

fs::path repository_in_cache(const fs::path& cache, const std::string& org,
                             const std::string& name) {
    return cache.empty() ? cache : cache / ("models--" + org + "--" + name);
}

fs::path cached_snapshot(const fs::path& repository) {
    constexpr size_t kMaxRefBytes = 256;
    std::error_code ignored;
    if (repository.empty()) return {};
    const fs::path reference = repository / "refs" / "main";
    if (!fs::exists(reference, ignored)) return {};
    std::string commit = read_text(reference, kMaxRefBytes);
    while (commit.ends_with('\n')) commit.pop_back();
    if (!is_plain_name(commit)) throw Error(reference.string() + ": holds no commit name");
    const fs::path snapshot = repository / "snapshots" / commit;
    return fs::is_directory(snapshot, ignored) ? snapshot : fs::path();
}

fs::path file_in_folder(const fs::path& folder, const std::string& name) {
    if (!is_plain_name(name)) {
        throw Error(folder.string() + ": " + in_quotes(name) + " is not a plain file name");
    }
    const fs::path home = resolved(folder);
    const fs::path file = resolved(folder / name);
    if (file.parent_path() != home && !is_cache_link(home, file)) {
        throw Error((folder / name).string() + ": links to a file outside the model folder");
    }
    return file;
}

namespace {

// Python writes NaN and infinities as bare words, which JSON does not have. Each is replaced by a
// string of the same length, so that reading the member as a number fails.
std::string without_bare_words(std::string text) {
    constexpr std::string_view kWords[] = {"-Infinity", "Infinity", "NaN"};
    bool in_string = false;
    for (size_t i = 0; i < text.size(); ++i) {
        if (in_string && text[i] == '\\') {
            ++i;
        } else if (text[i] == '"') {
            in_string = !in_string;
        } else if (!in_string && (text[i] == 'N' || text[i] == 'I' || text[i] == '-')) {
            for (const std::string_view word : kWords)
                if (std::string_view(text).substr(i).starts_with(word)) {
                    text.replace(i, word.size(), "\"N\"" + std::string(word.size() - 3, ' '));
                    i += word.size() - 1;
                    break;
                }
        }
    }
    return text;
}

}  // namespace

bool is_in_folder(const fs::path& folder, const std::string& name) {
    std::error_code error;
    const fs::file_status status = fs::symlink_status(folder / name, error);
    return status.type() != fs::file_type::not_found;
}

std::optional<Json> read_json_in_folder(const fs::path& folder, const std::string& name) {
    constexpr size_t kMaxBytes = 4 << 20, kMaxValues = 100'000;
    if (!is_in_folder(folder, name)) return {};
    return Json::parse(without_bare_words(read_text(file_in_folder(folder, name), kMaxBytes)),
                       (folder / name).string(), kMaxValues);
}

}  // namespace aerie
