#!/usr/bin/env bash
# Packs programs and the shared libraries that a bare machine lacks into one archive, FOLDER/suite.tar.xz, for
# gpu_check.sh:
#   gpu_suite.sh FOLDER PROGRAM...
# Its folders: bin; lib, the programs' libraries; vulkan, a loader and the libraries of X11 and glvnd that NVIDIA's
# driver needs, which only runs through Vulkan search, so that the machine's own tools do not find them; share.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
most=30 # MiB
folder=$1
shift
for tool in xz strip ldd; do command -v "$tool" >/dev/null || { echo "gpu_suite: no $tool here" >&2 && exit 1; }; done

rm -rf "$folder"
mkdir -p "$folder"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
mkdir -p "$stage"/{bin,lib,vulkan,share/aerie}
cp "$root/bench/data/acceptance.txt" "$stage/share/aerie/"
for program in "$@"; do
  cp "$program" "$stage/bin/"
  # All libraries but the C library, which the other machine has.
  ldd "$program" | awk '$3 ~ /^\// { print $3 }' | { grep -vE '/(libc|libm|libdl|librt|libpthread)\.so' || true; } |
    while read -r library; do cp -L "$library" "$stage/lib/"; done
done

# Takes a library of a Debian package from where it is installed, else from the package itself. A library that cannot be
# found is reported, since the other machine may have it.
carry() {
  local library=$1 package=$2 found
  found=$({ ldconfig -p 2>/dev/null || /sbin/ldconfig -p; } | awk -v name="$library" '$1 == name && /x86-64/ && !found { print $NF; found = 1 }')
  if [ -z "$found" ] && (mkdir -p "$stage/debs" && cd "$stage/debs" && apt-get -qq download "$package") >/dev/null 2>&1; then
    dpkg-deb -x "$stage/debs/$package"_*.deb "$stage/debs/root"
    found=$(find "$stage/debs/root" -name "$library" | head -1)
  fi
  if [ -n "$found" ]; then
    cp -L "$found" "$stage/vulkan/$library"
  else
    echo "gpu_suite: no $library ($package) to be had" >&2
  fi
}
while read -r library package; do carry "$library" "$package"; done <<'LIBRARIES'
libvulkan.so.1 libvulkan1
libGLdispatch.so.0 libglvnd0
libEGL.so.1 libegl1
libGLX.so.0 libglx0
libX11.so.6 libx11-6
libXext.so.6 libxext6
libxcb.so.1 libxcb1
libXau.so.6 libxau6
libXdmcp.so.6 libxdmcp6
libbsd.so.0 libbsd0
libmd.so.0 libmd0
LIBRARIES
rm -rf "$stage/debs"
strip "$stage"/bin/* || echo "gpu_suite: not everything could be stripped" >&2
strip --strip-unneeded "$stage"/lib/* "$stage"/vulkan/* 2>/dev/null || true

# One dictionary window over all programs, which contain the same kernels and shaders, and no filter for calls, which
# would make them differ.
unpacked=$(du -sm "$stage" | cut -f1)
window=$((unpacked < 192 ? unpacked + 1 : 192)) # packing takes eleven times as much memory
tar -C "$stage" --sort=name --owner=0 --group=0 --mtime=@0 -cf - . |
  xz -T1 --lzma2=preset=6,dict=${window}MiB --memlimit-compress=4GiB >"$folder/suite.tar.xz"
bytes=$(stat -c %s "$folder/suite.tar.xz")
printf '%s: %s MiB, unpacked %s MiB\n' "$folder/suite.tar.xz" "$(awk "BEGIN { printf \"%.1f\", $bytes / 1048576 }")" "$unpacked"
if [ "$bytes" -gt $((most << 20)) ]; then
  echo "gpu_suite: more than $most MiB: build with -DAERIE_CUDA_ARCHITECTURES=90, or the GPU's" >&2
  exit 1
fi
