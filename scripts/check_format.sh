#!/usr/bin/env bash
# Fails where clang-format would change a source file. Versions differ in what they do: Debian 12's is the one that counts.
set -euo pipefail
cd "$(dirname "$0")/.."

clang-format --version | grep -q 'version 14\.' || {
  echo "check_format: needs clang-format 14, as Debian 12 has it: $(clang-format --version 2>&1 | head -1)" >&2
  exit 1
}
git ls-files '*.h' '*.cpp' '*.cu' '*.cuh' | grep -v '^tests/data/' | xargs clang-format --dry-run -Werror
