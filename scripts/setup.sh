#!/usr/bin/env bash
# Installs what building aerie needs on Debian 12 or Ubuntu (22.04 or newer); does nothing where all is there.
set -euo pipefail

packages=(build-essential cmake ninja-build ccache pkgconf nlohmann-json3-dev libcli11-dev
  libsentencepiece-dev libgtest-dev python3 libvulkan-dev libvulkan-volk-dev glslang-tools)
missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup: this script knows apt only; please install: ${missing[*]}" >&2
  exit 1
fi
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
echo "setup: installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq >&2
DEBIAN_FRONTEND=noninteractive "${as_root[@]}" apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
