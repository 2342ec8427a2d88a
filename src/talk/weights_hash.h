// A name for the weights of a model: models with other weights have other names.
#pragma once

#include <filesystem>
#include <string>

#include "io/model_source.h"

namespace aerie {

// A hash of names, types, shapes and all bytes of the tensors, whichever files contain them. The
// bytes are read once. After that the hash is kept in the folder `cache` (empty: nothing is kept)
// and used as long as sizes and times of the files are the same. Throws Error naming a file that
// has changed since the source was opened.
std::string weights_hash(const ModelSource& source, const std::filesystem::path& cache);

}  // namespace aerie
