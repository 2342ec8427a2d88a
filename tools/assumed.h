// Notes on what the user did not ask for: properties that a model's files do not state and the
// program had to assume, and flags that change nothing.
#pragma once

#include <string>

#include "options.h"

namespace aerie {

struct ModelFiles;

// Reports the assumptions in a line on stderr; prints nothing if there are none.
void tell_assumed(const ModelFiles& files);

// Notes on stderr the drafting flags that change nothing with this drafter, a former name of it,
// and more threads than cores.
void tell_unused(const ModelOptions& options, const std::string& method);
void tell_unused(const SamplingOptions& options, const Sampling& sampling);

}  // namespace aerie
