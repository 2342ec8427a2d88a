// The arguments of a command line, before CLI11 reads them: what a newcomer mistypes is refused in
// words that say what to type.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace aerie {

// Rewrites arguments that CLI11 would misread: `help COMMAND` is COMMAND --help, `version` is
// --version, `run MODEL` is chat --model MODEL, "--prompt=" is an empty prompt (CLI11 would take
// the next argument for it), and llama.cpp's flags are ours (peer_flags.h): its -hf NAME is --model
// hf:NAME. Values stay as they are. Throws UsageError for an option or command that there is not,
// an option without its value or given twice, and an argument that belongs to nothing.
std::vector<std::string> understood(const CLI::App& app, std::vector<std::string> arguments);

// The names of all commands, with those that understood() replaces by others.
std::vector<std::string> command_names(const CLI::App& app);

}  // namespace aerie
