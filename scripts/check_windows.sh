#!/usr/bin/env bash
# Builds the library and the examples for Windows with x86_64-w64-mingw32 (posix threads), and runs them under Wine. The
# libraries that it links come from Debian's sources (fetch_source.sh), headers that are the same on every system from
# this one. Needs what setup.sh --windows installs, and build/aerie, with which the texts are compared.
set -euo pipefail
cd "$(dirname "$0")/.."

build=$PWD/build-windows
prefix=$build/prefix

fail() {
  echo "check_windows: $*" >&2
  exit 1
}
for program in x86_64-w64-mingw32-g++-posix wine; do
  command -v $program >/dev/null || fail "needs $program: scripts/setup.sh --windows"
done
[ -x build/aerie ] || fail "needs build/aerie: scripts/test.sh"

# configured FOLDER SOURCE OPTION...
configured() {
  local folder=$1 source=$2
  shift 2
  cmake -S "$source" -B "$folder" -G Ninja -DCMAKE_TOOLCHAIN_FILE="$PWD/cmake/mingw.cmake" -DCMAKE_BUILD_TYPE=Release "$@"
}

# with_source NAME OPTION...: builds a library from Debian's source into the prefix, once.
with_source() {
  local name=$1 reason cache=${XDG_CACHE_HOME:-$HOME/.cache}
  shift
  [ ! -f "$build/$name/done" ] || return 0
  reason=$(scripts/fetch_source.sh 12 "$name") || fail "no source of $name ($reason)"
  configured "$build/$name" "$cache/aerie/debian12/source/$name" -DCMAKE_INSTALL_PREFIX="$prefix" -DBUILD_SHARED_LIBS=OFF \
    -DCMAKE_C_COMPILER_LAUNCHER="$(command -v ccache || true)" "$@"
  cmake --build "$build/$name" --target install >"$build/$name/log" || fail "$(tail -3 "$build/$name/log")"
  touch "$build/$name/done"
}
with_source pcre2 -DPCRE2_SUPPORT_JIT=ON -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_BUILD_TESTS=OFF
with_source utf8proc
# The libraries' headers ask whether they are part of a DLL.
sed -i '/^Cflags:/s/:.*/: -I${includedir} -DPCRE2_STATIC -DUTF8PROC_STATIC/' "$prefix"/lib/pkgconfig/*.pc
dpkg-query -L nlohmann-json3-dev libvulkan-dev libvulkan-volk-dev |
  sed -nE 's#^/usr/((include|share/cmake)/.*[.](h|hpp|c|cmake))$#\1#p' | (cd /usr && xargs cp --parents -t "$prefix")

export PKG_CONFIG_LIBDIR=$prefix/lib/pkgconfig
configured "$build" . -DCMAKE_FIND_ROOT_PATH="$prefix" -DCMAKE_INSTALL_PREFIX=/aerie -DAERIE_TESTS=OFF -DAERIE_WERROR=ON \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
grep -q '^AERIE_VULKAN:.*=ON' "$build/CMakeCache.txt" || fail 'the Vulkan backend is left out'
cmake --build "$build" --target aerie_shared aerie_static
cmake --install "$build" --prefix "$build/installed" >/dev/null
configured "$build/programs" tests/windows -DCMAKE_FIND_ROOT_PATH="$build/installed;$prefix" \
  -DCMAKE_PREFIX_PATH="$build/installed"
cmake --build "$build/programs"
python3 tests/windows/windows_test.py "$build/installed" "$build/programs" "$build/run" build/aerie
