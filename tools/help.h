// How helps are laid out.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>

namespace aerie {

// CLI11's layout, in which descriptions are broken between words so that a line has at most 100
// columns. A line break in a description stays.
std::shared_ptr<CLI::Formatter> help_formatter();

}  // namespace aerie
