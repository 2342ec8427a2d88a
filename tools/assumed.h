// What a model's files do not say and the program had to assume.
#pragma once

namespace aerie {

struct ModelFiles;

// Tells it in a line on stderr; nothing where the files say all.
void tell_assumed(const ModelFiles& files);

}  // namespace aerie
