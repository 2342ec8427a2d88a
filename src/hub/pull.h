// Downloads models from Hugging Face's hub into the cache that all of its programs share:
// models--ORG--NAME/blobs/HASH, linked from snapshots/COMMIT/FILE; refs/main names the commit. A
// file is a blob only once it is whole and its hash is right; until then it is HASH.incomplete, and
// a later download goes on with it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "io/repository.h"

namespace aerie::hub {

struct PullProgress {
    std::string file;
    uint64_t done_bytes = 0, all_bytes = 0;  // over all files
};

struct PullOptions {
    std::string endpoint;  // "https://huggingface.co"
    std::string token;     // may be empty
    std::filesystem::path cache;
    std::function<void(const PullProgress&)> on_progress;  // may be empty, like the others
    std::function<void(const std::string&)> on_note;       // lines for the user, such as of waiting
};

// Downloads the files of the model that the cache lacks. Returns the model's path: a GGUF file, or
// the folder of a snapshot. Throws Error, UsageError.
std::filesystem::path pull(const RepositoryName& name, const PullOptions& options);

}  // namespace aerie::hub
