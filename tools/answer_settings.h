// How `aerie chat` answers. /set changes sampling and length; other commands change the rest.
#pragma once

#include <string>

#include "engine/sampling.h"

namespace aerie {

struct AnswerSettings {
    Sampling sampling = {};
    int max_tokens = -1;  // -1: to the end of the context
    bool drafts = true, stats = false, shade = false;
    bool fold_thoughts = false;  // thoughts of a reasoning model are not shown
    bool on_terminal = false;    // the user watches the answer grow
};

// Changes one setting; `setting` is its name and its value, such as "temp 0.8". A seed of -1 is a
// random one. Throws UsageError, and changes nothing then.
void set_by_name(AnswerSettings& settings, const std::string& setting);

// The names that set_by_name knows, with their values.
std::string shown(const AnswerSettings& settings);

}  // namespace aerie
