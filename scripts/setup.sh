#!/usr/bin/env bash
# Installs what a build of aerie needs on Debian 12 or Ubuntu (22.04 or newer), and what each named group needs:
#   --tests     the tests: a Vulkan driver for CPUs, Khronos' validation layers
#   --vulkan    the long tests on a second implementation of Vulkan (SwiftShader), and under a current validation layer
#   --windows   check_windows.sh: a compiler for Windows, Wine, sources of the libraries that libaerie.dll is made with
#   --web       the tests of the chat page, with OpenAI's client and of the package for Node: a browser, Node.js, npm packages
#   --vocabularies  the long test of published vocabularies: Node.js, npm packages of 840 MB
#   --desktop   examples/desktop and its test: Qt 6, a screen in memory
#   --style     check_format.sh
#   --replicas  the test of examples/replicas: HAProxy
#   --package   check_package.sh and check_abi.sh
# Does nothing if everything is installed. apt's sources are not changed: packages that the system's suites lack are
# unpacked beside the system, without root (fetch_debian.sh, fetch_source.sh).
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

# unpack RELEASE NAME PACKAGE CONSEQUENCE [--alone]: prints one line with the consequence if it fails.
unpack() {
  local reason
  reason=$("$here/fetch_debian.sh" ${5:+"$5"} "$1" "$2" "$3") || echo "setup: no $3 of Debian $1 ($reason): $4" >&2
}

# node_modules FOLDER: installs the packages of its lockfile.
node_modules() {
  [ -d "$here/../$1/node_modules" ] || npm --prefix "$here/../$1" ci --ignore-scripts --no-audit --no-fund >&2 ||
    fail "npm could not install what $1 needs"
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

packages=(build-essential cmake ninja-build ccache pkgconf libcurl4-openssl-dev nlohmann-json3-dev libcli11-dev
  libpcre2-dev libutf8proc-dev libedit-dev libboost-dev python3 libvulkan-dev libvulkan-volk-dev glslang-tools)
tests='' vulkan='' web='' vocabularies='' windows=''
for group in "$@"; do
  case $group in
    --tests)
      tests=yes
      packages+=(libgtest-dev libsentencepiece-dev libopenblas0 vulkan-validationlayers spirv-tools spirv-cross tmux)
      is_debian_12 || has_driver || packages+=(mesa-vulkan-drivers)
      ;;
    --vulkan) vulkan=yes ;;
    --windows)
      windows=yes
      packages+=(gcc-mingw-w64-x86-64-posix g++-mingw-w64-x86-64-posix wine wine64)
      ;;
    --web)
      web=yes
      packages+=(chromium)
      command -v npm >/dev/null || packages+=(nodejs npm)
      ;;
    --vocabularies)
      vocabularies=yes
      command -v npm >/dev/null || packages+=(nodejs npm)
      ;;
    --desktop) packages+=(qt6-base-dev xvfb xauth fonts-dejavu-core) ;;
    --style) packages+=(clang-format) ;;
    --replicas) packages+=(haproxy) ;;
    --package) packages+=(dpkg-dev debhelper fakeroot lintian groff-base abigail-tools) ;;
    *) fail "$group is no group; see the head of $0" ;;
  esac
done
install_missing "${packages[@]}"

knows_cooperative_matrices ||
  unpack 13 glslang glslang-tools 'the build leaves out the shaders for cooperative matrices'
if [ "$tests" ]; then
  ! is_debian_12 || has_driver || unpack 12 mesa mesa-vulkan-drivers 'tests on a Vulkan device are skipped'
  # A driver with cooperative matrices; only their tests run on it.
  unpack 13 mesa mesa-vulkan-drivers 'the tests of cooperative matrices are skipped'
fi
# Chromium's package contains both; they need no other package.
[ ! "$vulkan" ] || [ -e /usr/lib/chromium/libvk_swiftshader.so ] ||
  unpack 12 chromium-common chromium-common 'the long tests on SwiftShader and of the current validation layer are skipped' --alone
if [ "$windows" ]; then
  for name in pcre2 utf8proc; do
    reason=$("$here/fetch_source.sh" 12 "$name") || fail "no source of $name ($reason)"
  done
fi
if [ "$web" ]; then
  node_modules tests/page
  node_modules tests/node
  node_modules bindings/node
fi
[ -z "$vocabularies" ] || node_modules tests/vocabularies
