// Deletes models from Hugging Face's cache, which all programs share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "io/repository.h"

namespace aerie {

// The files of a model in the cache that nothing else there needs.
struct CachedModel {
    std::filesystem::path repository;          // the folder models--ORG--NAME
    std::vector<std::filesystem::path> files;  // entries of its snapshots, and their blobs
    uint64_t size_bytes = 0;                   // bytes that become free
    bool is_all = false;                       // whether the repository has no other files
};

// Finds ORG/NAME, which is the whole repository, or the files of one quantisation of it. Throws
// Error if the cache does not have them.
CachedModel find_cached_model(const RepositoryName& name);

// Deletes these files; the whole folder if the repository has no others. Throws Error naming what
// could not be deleted.
void delete_cached_model(const CachedModel& model);

}  // namespace aerie
