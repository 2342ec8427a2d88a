// Where the program keeps what it remembers between runs.
#pragma once

#include <filesystem>

namespace aerie {

// aerie's folder in $XDG_STATE_HOME or ~/.local/state; empty: neither is known.
std::filesystem::path state_folder();

}  // namespace aerie
