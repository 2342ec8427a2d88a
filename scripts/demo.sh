#!/usr/bin/env bash
# Builds aerie and lets the bundled model answer with EAGLE-2 drafting as it is by default, compared with plain
# decoding. Arguments, if any, replace the prompt: scripts/demo.sh "USER: ... ASSISTANT:"
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/setup.sh
cmake --preset release -DAERIE_TESTS=OFF >/dev/null
cmake --build --preset release --target aerie >&2

prompt=${1:-"USER: A train travels 60 miles per hour for 3 hours and then 45 miles per hour for 2 hours. How many miles does it travel in all? ASSISTANT:"}
echo "$prompt"
build/aerie generate -m aerie-tiny --draft eagle2 -n 256 --compare-plain -p "$prompt"
