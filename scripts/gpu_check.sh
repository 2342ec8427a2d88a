#!/usr/bin/env bash
# Checks and measures the CUDA backend on a machine with an NVIDIA GPU, and the same GPU through Vulkan. It runs in a
# copy of the repository with the suite that the target gpu_suite made elsewhere (build/gpu_suite/suite.tar.xz). It is
# made for two calls, each of which ends by itself after at most 440 and 300 seconds:
#   gpu_check.sh [--only first] [--out FOLDER]    ops, compare, lossless, bench: is it right, how fast is it
#   gpu_check.sh --only second [--out FOLDER]     Vulkan, counters, sanitizers, larger models
# Sections can also be named, separated by commas (gpu_check/sections.py has what each one does, and its time limit):
#   --only text,ops,compare,lossless,bench,early,profile,vulkan,ncu,sanitizer,large,invariance,samples
# Further options: --suite FOLDER or archive, --device cuda:N, --seconds N for all sections together.
# A check that fails, hangs or is missing is a line of the report and stops nothing else; missing things are reported as
# Skipped. Writes the report, gpu_report as Markdown and JSON, again after every check, gpu_logs.tar.gz, and for the
# benches clocks.csv and yardstick.json. The status is 0 if something passed and nothing failed.
set -u
here=$(cd "$(dirname "$0")" && pwd)
# The system's own python3 is preferred to one with packages that take seconds to start.
python=$(PATH=/usr/bin:/bin command -v python3 || command -v python3) || { echo "gpu_check: no python3 here" >&2 && exit 2; }
exec "$python" -B "$here/gpu_check" --root "$(dirname "$here")" "$@"
