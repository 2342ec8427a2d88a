// A model runs even if its files give little but its layers; the user should know what was assumed.
#include "assumed.h"

#include "engine/model_files.h"
#include "terminal.h"

namespace aerie {

void tell_assumed(const ModelFiles& files) {
    if (files.config.context_is_assumed)
        print_note("(" + files.target.path.string() +
                   " does not say how long a context the model takes: " +
                   std::to_string(files.config.context) + " tokens are assumed)");
}

}  // namespace aerie
