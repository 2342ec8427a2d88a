// Where a model lies on disk, and which of its files may be opened.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "io/json.h"

namespace aerie {

// The folder of Hugging Face's programs: HF_HOME or ~/.cache/huggingface.
std::filesystem::path hugging_face_home();
// Their cache of models: HF_HUB_CACHE or the folder `hub` in it.
std::filesystem::path hugging_face_cache();

// The folder of the repository "org/name" in a cache.
std::filesystem::path repository_in_cache(const std::filesystem::path& cache,
                                          const std::string& org, const std::string& name);
// The snapshot that refs/main of such a folder names; empty if there is none. Throws Error if
// refs/main holds something else.
std::filesystem::path cached_snapshot(const std::filesystem::path& repository);

// Whether the text is the name of one file or folder, and leads nowhere else.
bool is_plain_name(const std::string& name);

// Path of the file `name` of a model folder. Throws Error unless it exists, `name` is one plain
// file name, and the file lies in the folder itself or where a Hugging Face cache keeps it
// (models--org--name/blobs for models--org--name/snapshots/<commit>), symlinks resolved.
std::filesystem::path file_in_folder(const std::filesystem::path& folder, const std::string& name);

// Whether the folder has a file `name`. A dangling link counts as one: opening it throws.
bool is_in_folder(const std::filesystem::path& folder, const std::string& name);

// Reads one of the folder's small JSON files; nullopt if it does not exist. Throws Error as
// file_in_folder does, and for more than 4 MB or 100,000 values.
std::optional<Json> read_json_in_folder(const std::filesystem::path& folder,
                                        const std::string& name);

}  // namespace aerie
