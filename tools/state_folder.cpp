#include "state_folder.h"

#include <cstdlib>

namespace aerie {

namespace fs = std::filesystem;

fs::path state_folder() {
    const auto variable = [](const char* name) {
        const char* value = std::getenv(name);
        return fs::path(value ? value : "");
    };
    fs::path state = variable("XDG_STATE_HOME");
    if (!state.is_absolute()) state = variable("HOME") / ".local" / "state";
    return state.is_absolute() ? state / "aerie" : fs::path();
}

}  // namespace aerie
