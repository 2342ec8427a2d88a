// How helps are laid out.
#pragma once

#include <CLI/CLI.hpp>
#include <initializer_list>
#include <memory>

namespace aerie {

// The group of flags that only --help-all shows.
inline constexpr const char* kExperiments = "Experiments";

// CLI11's layout, in which text is broken between words to fit the terminal, or 100 columns. A line
// break in a text stays.
std::shared_ptr<CLI::Formatter> help_formatter();

// Shows command lines at the end of the command's help.
void add_examples(CLI::App& command, std::initializer_list<const char*> examples);

// Hides the flags of the group kExperiments from all helps, unless `shown`. They work either way.
void show_experiments(CLI::App& app, bool shown);

}  // namespace aerie
