// What saved work depends on: by these names it is known whether it can be used.
#pragma once

#include <string>

#include "engine/model_files.h"

namespace aerie {

struct Identity {
    std::string model;       // the target, whatever files hold it
    std::string arithmetic;  // what computes with it, and in which types
    std::string draft;       // what drafts, and how
};

// Reads the tensors of the files, unless the cache knows them: see talk/weights_hash.h. Throws
// Error.
Identity identity_of(const ModelFiles& files, const LoadOptions& options,
                     const Capabilities& device);

}  // namespace aerie
