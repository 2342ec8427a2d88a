#!/usr/bin/env bash
# Puts programs and the shared libraries that a bare machine lacks into one folder: gpu_suite.sh FOLDER PROGRAM...
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
shift

rm -rf "$folder"
mkdir -p "$folder/bin" "$folder/lib" "$folder/share/aerie"
cp "$root/bench/data/acceptance.json" "$folder/share/aerie/"
for program in "$@"; do
  cp "$program" "$folder/bin/"
  # Everything but the C library itself, which the other machine has.
  ldd "$program" | awk '$3 ~ /^\// { print $3 }' | grep -vE '/(libc|libm|libdl|librt|libpthread)\.so' |
    while read -r library; do cp -L "$library" "$folder/lib/"; done
done
# Vulkan's loader, which is opened by name and finds the other machine's driver.
loader=$({ ldconfig -p 2>/dev/null || /sbin/ldconfig -p; } | awk '/libvulkan\.so\.1 / && !found { print $NF; found = 1 }')
[ -z "$loader" ] || cp -L "$loader" "$folder/lib/"
strip "$folder"/bin/* "$folder"/lib/* || echo "gpu_suite: not everything could be stripped" >&2
size=$(du -sm "$folder" | cut -f1)
echo "$folder: $size MiB"
if [ "$size" -gt 30 ]; then
  echo "gpu_suite: $folder has $size MiB; at most 30 are wanted (build with -DAERIE_CUDA_ARCHITECTURES=90, or the GPU's)" >&2
  exit 1
fi
