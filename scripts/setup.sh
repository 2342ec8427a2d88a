#!/usr/bin/env bash
# Installs what building aerie needs on Debian 12 or Ubuntu (22.04 or newer); with --tests also what its tests need:
# a Vulkan driver for CPUs and Khronos' validation layers; with --windows also the compiler of check_windows.sh. Does
# nothing where all is there. apt's sources stay as they are: what the system's suites lack is unpacked beside the
# system, without root (fetch_debian.sh).
set -euo pipefail
here=$(dirname "$0")

fail() {
  echo "setup: $*" >&2
  exit 1
}

install_missing() {
  local missing=() as_root=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || fail "this script knows apt only; please install: ${missing[*]}"
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "needs root or sudo to install: ${missing[*]}"
    as_root=(sudo)
  fi
  echo "setup: installing ${missing[*]}" >&2
  "${as_root[@]}" apt-get update -qq >&2 &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
    fail "could not install: ${missing[*]}"
}

# unpack RELEASE NAME PACKAGE WITHOUT: one line where it cannot be had; WITHOUT says what follows.
unpack() {
  local reason
  reason=$("$here/fetch_debian.sh" "$1" "$2" "$3") || echo "setup: no $3 of Debian $1 ($reason): $4" >&2
}

knows_cooperative_matrices() {
  local probe status=0
  probe=$(mktemp --suffix=.comp)
  printf '#version 450\n#extension GL_KHR_cooperative_matrix : require\nvoid main() {}\n' >"$probe"
  glslangValidator -V -o "$probe.spv" "$probe" >/dev/null 2>&1 || status=1
  rm -f "$probe" "$probe.spv"
  return $status
}

is_debian_12() { grep -q '^VERSION_CODENAME=bookworm' /etc/os-release; }
# Debian 12's own Mesa is of 2022, too old for the tests.
has_driver() {
  local mesa
  mesa=$(dpkg-query -W -f='${Version}' mesa-vulkan-drivers 2>/dev/null) && dpkg --compare-versions "$mesa" lt 23 && return 1
  compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null || compgen -G '/etc/vulkan/icd.d/*.json' >/dev/null
}

packages=(build-essential cmake ninja-build ccache pkgconf nlohmann-json3-dev libcli11-dev
  libpcre2-dev libutf8proc-dev python3 libvulkan-dev libvulkan-volk-dev glslang-tools)
if [ "${1:-}" = --tests ]; then
  packages+=(libgtest-dev libsentencepiece-dev vulkan-validationlayers spirv-tools)
  is_debian_12 || has_driver || packages+=(mesa-vulkan-drivers)
fi
[ "${1:-}" != --windows ] || packages+=(g++-mingw-w64-x86-64-posix)
install_missing "${packages[@]}"

knows_cooperative_matrices ||
  unpack 13 glslang glslang-tools 'the build leaves out the shaders for cooperative matrices'
if [ "${1:-}" = --tests ]; then
  ! is_debian_12 || has_driver || unpack 12 mesa mesa-vulkan-drivers 'tests on a Vulkan device are skipped'
  # One that has cooperative matrices; only their tests run on it.
  unpack 13 mesa mesa-vulkan-drivers 'the tests of cooperative matrices are skipped'
fi
