// The configuration of a head by a config.json alone.
#pragma once

#include "draft/heads/kinds.h"

namespace aerie::test {

// Throws Error.
inline HeadConfig head_of_config(const Json& json) {
    ModelSource source;
    source.path = "head";
    source.config = {json, "head"};
    return head_config(source);
}

}  // namespace aerie::test
