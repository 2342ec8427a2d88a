// Names for everything that saved work depends on. They decide whether it can be used.
#pragma once

#include <string>

#include "engine/model_files.h"

namespace aerie {

struct Identity {
    std::string model;       // the target, whichever files contain it
    std::string arithmetic;  // the device and the types that it computes with
    std::string draft;       // the drafter and its options
};

// Reads the tensors of the files unless the cache knows their hash; see talk/weights_hash.h. Throws
// Error.
Identity identity_of(const ModelFiles& files, const LoadOptions& options,
                     const Capabilities& device);

}  // namespace aerie
