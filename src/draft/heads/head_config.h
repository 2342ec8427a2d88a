// The configuration of a draft head or of a draft model.
#pragma once

#include <any>

#include "model/config.h"

namespace aerie {

struct DraftHead;

// The fields that every model has, and those of one kind of head.
struct HeadConfig : ModelConfig {
    const DraftHead* kind = nullptr;  // the row of draft/heads/kinds.h
    std::any own = {};                // fields that only this kind has
};

}  // namespace aerie
