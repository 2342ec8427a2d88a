// Properties that a model's files do not state and the program had to assume.
#pragma once

namespace aerie {

struct ModelFiles;

// Reports the assumptions in a line on stderr; prints nothing if there are none.
void tell_assumed(const ModelFiles& files);

}  // namespace aerie
