// The weights of a model as one name: models of other weights have another one.
#pragma once

#include <filesystem>
#include <string>

#include "io/model_source.h"

namespace aerie {

// A hash of the names, types, shapes and all bytes of the tensors, whatever files hold them. They
// are read once: after that the hash is found in the folder `cache` (empty: nothing is kept) as
// long as the files have the size and the time that they had. Throws Error naming a file that has
// changed since the source was opened.
std::string weights_hash(const ModelSource& source, const std::filesystem::path& cache);

}  // namespace aerie
