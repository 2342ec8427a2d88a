#!/usr/bin/env bash
# Makes aerie-VERSION-windows-x86_64.zip: the library for Windows, static and as a DLL, its headers and CMake package, the
# two small examples as programs, and the bundled models. Built with x86_64-w64-mingw32 (posix threads); the libraries
# that it links come from Debian's sources (fetch_source.sh), headers that are the same on every system from this one.
# Needs what setup.sh --windows installs.
#   packaging/windows.sh [FOLDER]    FOLDER receives the archive (default: dist)
set -euo pipefail
cd "$(dirname "$0")/.."

folder=${1:-dist}
exec 3>&1 1>&2  # only the archive's path goes to stdout
build=$PWD/build-windows
prefix=$build/prefix

fail() {
  echo "windows: $*" >&2
  exit 1
}
command -v x86_64-w64-mingw32-g++-posix >/dev/null || fail 'needs x86_64-w64-mingw32-g++-posix: scripts/setup.sh --windows'

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

version=$(sed -n 's/^project(aerie VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=aerie-$version-windows-x86_64
rm -rf "$build/stage"
mkdir -p "$build/stage" "$folder"
cp -r "$build/installed" "$build/stage/$name"
# Programs find the DLL beside them, and the models beside the DLL's folder.
cp "$build"/programs/examples/*.exe "$build/stage/$name/bin"
cp LICENSE README.md CHANGELOG.md "$build/stage/$name"
cmake -E chdir "$build/stage" cmake -E tar cf "$name.zip" --format=zip "--mtime=$(git log -1 --date=format:%F --format=%cd 2>/dev/null || date -I)" "$name"
mv "$build/stage/$name.zip" "$folder"
echo "$folder/$name.zip" >&3
