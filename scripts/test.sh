#!/usr/bin/env bash
# Installs missing packages, builds everything and runs the tests, the quick ones first. `--all` also runs the long
# suites; further arguments go to cmake.
set -euo pipefail
cd "$(dirname "$0")/.."

rest='simt'
if [ "${1:-}" = --all ]; then
  rest='simt|long'
  shift
fi
scripts/setup.sh --tests
# The backends that demo.sh left out of the build are built again.
cmake --preset release -UAERIE_CUDA -UAERIE_CUDA_ARCHITECTURES -DAERIE_TESTS=ON "$@"
cmake --build --preset release
ctest --test-dir build --output-on-failure -j "$(nproc)" -L quick
ctest --test-dir build --output-on-failure -j "$(nproc)" -L "$rest"
