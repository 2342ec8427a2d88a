// `aerie cache`: what aerie keeps in the user's cache folder to start faster.
#include <filesystem>
#include <system_error>

#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "format.h"
#include "io/json.h"
#include "io/model_places.h"
#include "talk/locate.h"
#include "terminal.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

// Files of one kind, which are known by the beginning and the end of their names.
struct Kind {
    const char *name, *begin, *end, *what;
};
constexpr Kind kKinds[] = {
    {"costs", "costs-", ".json", "measured costs of passes, by model and device"},
    {"hashes", "weights-", ".txt", "hashes of weights, for stored conversations"},
    {"pipelines", "pipelines-", "", "compiled Vulkan pipelines, by device"}};

std::vector<fs::path> files_of(const Kind& kind, const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code ignored;
    platform::each_entry(folder, [&](const fs::path& entry) {
        const std::string name = entry.string();
        if (name.starts_with(kind.begin) && name.ends_with(kind.end) &&
            fs::is_regular_file(folder / entry, ignored))
            files.push_back(folder / entry);
    });
    return files;
}

uint64_t size_of(const std::vector<fs::path>& files) {
    uint64_t bytes = 0;
    for (const fs::path& file : files) bytes += bytes_of(file);
    return bytes;
}

void remove(const std::vector<fs::path>& files) {
    for (const fs::path& file : files) {
        std::error_code error;
        fs::remove(file, error);
        if (error) throw Error(file.string() + ": " + error.message());
    }
}

}  // namespace

int run_cache(const CacheOptions& options) {
    const fs::path folder = default_cache();
    if (folder.empty()) throw Error("the user's cache folder is not known: set XDG_CACHE_HOME");
    Json::Array kinds;
    std::string table = folder.string() + "\n";
    for (const Kind& kind : kKinds) {
        const std::vector<fs::path> files = files_of(kind, folder);
        const uint64_t bytes = size_of(files);
        kinds.push_back(Json::Object{
            {"name", kind.name}, {"files", uint64_t(files.size())}, {"size_bytes", bytes}});
        table += format("%-10s %4zu files %10s  %s\n", kind.name, files.size(),
                        megabytes(bytes).c_str(), kind.what);
        if (options.clear) remove(files);
    }
    if (options.json)
        print(Json(Json::Object{{"schema", "aerie-cache-1"},
                                {"folder", folder.string()},
                                {"kinds", std::move(kinds)}})
                  .dump() +
              "\n");
    else
        print(table + (options.clear
                           ? "deleted\n"
                           : "`aerie models` lists models, `aerie forget` deletes what was "
                             "learnt\n"));
    return 0;
}

}  // namespace aerie
