#include "state_folder.h"

#include "core/platform.h"

namespace aerie {

namespace fs = std::filesystem;

fs::path state_folder() {
    fs::path state = platform::path_variable("XDG_STATE_HOME");
    if (!state.is_absolute()) state = platform::home_folder() / ".local" / "state";
    return state.is_absolute() ? state / "aerie" : fs::path();
}

}  // namespace aerie
