#!/usr/bin/env bash
# Puts programs, the shared libraries that a bare machine lacks, models and test data into one folder: gpu_suite.sh FOLDER PROGRAM...
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
shift

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib" "$folder/tests" "$folder/scripts" "$folder/bench"
for program in "$@"; do
  cp "$program" "$folder/bin/"
  # Everything but the C library itself, which the other machine has.
  ldd "$program" | awk '$3 ~ /^\// { print $3 }' | grep -vE '/(libc|libm|libdl|librt|libpthread)\.so' |
    while read -r library; do cp -L "$library" "$folder/lib/"; done
done
strip "$folder"/bin/* "$folder"/lib/* 2>/dev/null
cp -r "$root/models" "$folder/"
cp -r "$root/tests/data" "$folder/tests/"
cp -r "$root/bench/data" "$folder/bench/"
cp "$root/scripts/gpu_check.sh" "$folder/scripts/"

size=$(du -sm "$folder" | cut -f1)
echo "$folder: $size MiB"
if [ "$size" -gt 30 ]; then
  echo "gpu_suite: $folder has $size MiB; at most 30 are wanted" >&2
  exit 1
fi
