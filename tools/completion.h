// `aerie completion`: scripts that make a shell complete commands, flags and their values.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace aerie {

// `shell`: "bash", "zsh" or "fish". The script lists the commands and flags of `app` as they are;
// flags that helps hide stay hidden.
std::string completion_script(const CLI::App& app, const std::string& shell);

}  // namespace aerie
