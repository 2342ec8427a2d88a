#include "hub.h"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "commands.h"
#include "core/error.h"
#include "core/platform.h"
#include "format.h"
#include "hub/pull.h"
#include "io/input_file.h"
#include "io/model_folder.h"
#include "io/model_places.h"
#include "terminal.h"

namespace aerie {

namespace fs = std::filesystem;

namespace {

std::string variable(const char* name) {
    const char* value = std::getenv(name);
    return value ? value : "";
}

bool is_offline() {
    const std::string value = variable("HF_HUB_OFFLINE");
    return !value.empty() && value != "0";
}

// HF_TOKEN, or the token that `hf auth login` has written.
std::string token() {
    if (const std::string token = variable("HF_TOKEN"); !token.empty()) return token;
    fs::path file = platform::path_variable("HF_TOKEN_PATH");
    if (file.empty() && !hugging_face_home().empty()) file = hugging_face_home() / "token";
    std::error_code error;
    if (!fs::is_regular_file(file, error)) return "";
    std::string text = read_text(file, 4096);
    while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
    return text;
}

std::string endpoint() {
    std::string url = variable("HF_ENDPOINT");
    if (url.empty()) url = "https://huggingface.co";
    while (url.ends_with('/')) url.pop_back();
    if (!url.starts_with("https://") && !url.starts_with("http://"))
        throw UsageError("HF_ENDPOINT=" + url + ": an address begins with https:// or http://");
    return url;
}

// The line of a running download, with its rate so far.
class Meter {
  public:
    explicit Meter(bool quiet) : line_(quiet) {}

    void show(const hub::PullProgress& progress) {
        using Clock = std::chrono::steady_clock;
        const Clock::time_point now = Clock::now();
        if (!has_begun_) start_ = now, start_bytes_ = progress.done_bytes, has_begun_ = true;
        if (now - shown_ < std::chrono::milliseconds(200)) return;
        shown_ = now;
        const double seconds = std::chrono::duration<double>(now - start_).count();
        const double rate =
            double(progress.done_bytes - std::min(start_bytes_, progress.done_bytes)) /
            std::max(seconds, 1e-3);
        std::string text = progress.file + ": " + megabytes(progress.done_bytes) + " of " +
                           megabytes(progress.all_bytes);
        if (seconds >= 1 && rate > 0) {
            const long left = long(double(progress.all_bytes - progress.done_bytes) / rate);
            char more[80];
            std::snprintf(more, sizeof(more), ", %.1f MB/s, %ld:%02ld left", rate / 1e6, left / 60,
                          left % 60);
            text += more;
        }
        line_.show(text);
    }
    void clear() { line_.clear(); }

  private:
    ProgressLine line_;
    std::chrono::steady_clock::time_point start_, shown_;
    uint64_t start_bytes_ = 0;
    bool has_begun_ = false;
};

fs::path download(const RepositoryName& name, bool quiet) {
    Meter meter(quiet);
    hub::PullOptions options;
    options.endpoint = endpoint();
    options.token = token();
    options.cache = hugging_face_cache();
    if (options.cache.empty())
        throw Error("the folder of Hugging Face's cache is not known: set HF_HUB_CACHE");
    options.on_progress = [&](const hub::PullProgress& progress) { meter.show(progress); };
    options.on_note = [&](const std::string& line) {
        meter.clear();
        if (!quiet) tell(line + "\n");
    };
    return hub::pull(name, options);
}

// The quantisations of a repository that are in the cache: "ORG/NAME:F16, ORG/NAME:Q4_0".
std::string cached_quants(const RepositoryName& name) {
    const fs::path snapshot =
        cached_snapshot(repository_in_cache(hugging_face_cache(), name.org, name.name));
    if (snapshot.empty()) return "";
    std::string quants;
    for (const GgufModel& model : gguf_models_of(files_in(snapshot)))
        quants += (quants.empty() ? "" : ", ") + name.id() + ":" + model.quant;
    return quants;
}

}  // namespace

fs::path fetch_from_hub(const std::string& text, bool offline) {
    const RepositoryName name = parse_repository_name(text);
    const fs::path found = find_in_hugging_face_cache(name);
    if (!found.empty()) return found;
    const auto what_there_is = [&] {
        const std::string quants = cached_quants(name);
        return quants.empty() ? "" : "; the cache has " + quants;
    };
    if (offline || is_offline())
        throw Error(text + " is not in the cache (" + hugging_face_cache().string() +
                    "), and downloads are off" + what_there_is());
    try {
        return download(name, false);
    } catch (const UsageError&) {
        throw;
    } catch (const Error& error) {
        throw Error(error.what() + what_there_is());
    }
}

namespace {

// The name as a shell reads it.
std::string for_shell(const std::string& name) {
    const bool is_plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
        return std::isalnum(c) || std::strchr("-_./:%", c);
    });
    if (is_plain) return name;
    std::string quoted = "'";
    for (const char c : name) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

}  // namespace

int run_pull(const PullCommandOptions& options) {
    const RepositoryName name = parse_repository_name(options.name);
    if (is_offline()) throw UsageError("HF_HUB_OFFLINE is set: nothing is downloaded");
    print(download(name, options.quiet).string() + "\n");
    if (!options.quiet)
        print_note("now: aerie chat -hf " +
                   (name.file.empty() ? name.id() + (name.quant.empty() ? "" : ":" + name.quant)
                                      : for_shell(options.name)));
    return 0;
}

}  // namespace aerie
