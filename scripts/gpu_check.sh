#!/usr/bin/env bash
# Checks and measures the CUDA backend on a machine with an NVIDIA GPU, and the same GPU through Vulkan: run in a copy of the
# repository with what the target gpu_suite made elsewhere (build/gpu_suite/suite.tar.xz). Made for two calls of which each stops
# itself, after 440 and 300 seconds at most:
#   gpu_check.sh [--only first] [--out FOLDER]    ops, compare, lossless, bench: is it right, how fast is it
#   gpu_check.sh --only second [--out FOLDER]     Vulkan, counters, sanitizers, larger models
# Sections may also be named, divided by commas (gpu_check/sections.py says what each does and may take):
#   --only text,ops,compare,lossless,bench,early,profile,vulkan,ncu,sanitizer,large,invariance,samples
# Further options: --suite FOLDER or archive, --device cuda:N, --seconds N for all sections together.
# Whatever fails, hangs or is missing is a line of the report and stops nothing else; what is not there says Skipped. Writes
# gpu_report.md and gpu_report.json anew after every check, gpu_logs.tar.gz, and of the benches clocks.csv and yardstick.json. The
# status is 0 if something passed and nothing failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# The system's own python3 before one whose packages take seconds to start.
python=$(PATH=/usr/bin:/bin command -v python3 || command -v python3) || { echo "gpu_check: no python3 here" >&2 && exit 2; }
exec "$python" -B "$here/gpu_check" --root "$(dirname "$here")" "$@"
