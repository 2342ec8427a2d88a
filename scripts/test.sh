#!/usr/bin/env bash
# Installs what is missing, builds everything and runs the tests, the quick ones first. `--all` runs the long suites
# too; further arguments go to cmake.
set -euo pipefail
cd "$(dirname "$0")/.."

rest='simt'
if [ "${1:-}" = --all ]; then
  rest='simt|long'
  shift
fi
scripts/setup.sh --tests
# What demo.sh left out of the build is no choice of the tests.
cmake --preset release -UAERIE_CUDA -UAERIE_CUDA_ARCHITECTURES -DAERIE_TESTS=ON "$@"
cmake --build --preset release
ctest --test-dir build --output-on-failure -j "$(nproc)" -L quick
ctest --test-dir build --output-on-failure -j "$(nproc)" -L "$rest"
