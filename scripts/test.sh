#!/usr/bin/env bash
# Builds everything and runs the tests. `--all` runs the long suites too; further arguments go to cmake.
set -euo pipefail
cd "$(dirname "$0")/.."

selection=(-LE long)
if [ "${1:-}" = --all ]; then
  selection=()
  shift
fi
scripts/setup.sh
cmake --preset release -DAERIE_TESTS=ON "$@"
cmake --build --preset release
ctest --test-dir build --output-on-failure "${selection[@]}"
