#!/usr/bin/env bash
# Installs what building aerie needs on Debian 12 or Ubuntu (22.04 or newer); does nothing where all is there.
set -euo pipefail

# Debian 12's GLSL compiler knows no cooperative matrices; one of Debian 13 does, beside the system's. Those who have
# neither get a build without them.
fetch_glslang() {
  local probe
  probe=$(mktemp --suffix=.comp)
  printf '#version 450\n#extension GL_KHR_cooperative_matrix : require\nvoid main() {}\n' >"$probe"
  glslangValidator -V -o "$probe.spv" "$probe" >/dev/null 2>&1 ||
    "$(dirname "$0")/fetch_debian.sh" glslang glslang-tools ||
    echo "setup: no newer glslang from Debian 13; shaders for cooperative matrices will be left out" >&2
  rm -f "$probe" "$probe.spv"
}

packages=(build-essential cmake ninja-build ccache pkgconf nlohmann-json3-dev libcli11-dev
  libsentencepiece-dev libgtest-dev python3 libvulkan-dev libvulkan-volk-dev glslang-tools)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  fetch_glslang
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  echo "setup: this script knows apt only; please install: ${missing[*]}" >&2
  exit 1
fi
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "setup: installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq >&2
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
fetch_glslang
