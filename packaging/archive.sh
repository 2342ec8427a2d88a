#!/usr/bin/env bash
# Makes the archive that runs as it is unpacked: aerie-VERSION-linux-x86_64.tar.xz with the program, the library, the
# libraries that a bare system lacks, and the bundled models. CPU and Vulkan are in it. Where nvcc is, a second archive
# aerie-VERSION-linux-x86_64-cuda.tar.xz holds libaerie_cuda.so, which the program finds once both are unpacked in the
# same folder. A system needs glibc as new as the one they are made on.
#   packaging/archive.sh [--without-models] [FOLDER]    FOLDER receives the archives (default: dist)
set -euo pipefail
cd "$(dirname "$0")/.."

models=1
if [ "${1:-}" = --without-models ]; then
  models=0
  shift
fi
folder=${1:-dist}
version=$(sed -n 's/^project(aerie VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=aerie-$version-linux-$(uname -m)

# The program and the library bring the C++ library along: older systems have an older one.
# An RPATH, unlike a RUNPATH, counts for the libraries of libraries, too.
static='-static-libstdc++ -static-libgcc -Wl,--disable-new-dtags'
cmake --preset release -B build-archive -DAERIE_TESTS=OFF -DAERIE_CUDA_MODULE=ON \
  -DCMAKE_INSTALL_PREFIX=/usr/local -DCMAKE_INSTALL_LIBDIR=lib "-DCMAKE_INSTALL_RPATH=\$ORIGIN/../lib" \
  "-DCMAKE_EXE_LINKER_FLAGS=$static" "-DCMAKE_SHARED_LINKER_FLAGS=$static" \
  "-DCMAKE_MODULE_LINKER_FLAGS=$static" >/dev/null
cmake --build build-archive >&2

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
top=$stage/$name
cmake --install build-archive --strip --prefix "$top" >/dev/null
rm -f "$top"/lib/*.a
if [ "$models" = 0 ]; then rm -r "$top/share/aerie/models"; fi
python3 bindings/package.py libraries "$top/bin/aerie" "$top/lib"
ln -s bin/aerie "$top/aerie"
cp LICENSE README.md CHANGELOG.md "$top"

mkdir -p "$folder"
# pack ARCHIVE TAR-ARGUMENT...: the same tree makes the same archive.
pack() {
  local archive=$folder/$1.tar.xz
  shift
  tar --sort=name --owner=0 --group=0 --numeric-owner "--mtime=@$(git log -1 --format=%ct 2>/dev/null || date +%s)" \
    -C "$stage" -c "$@" | xz -T0 -6 >"$archive"
  echo "$archive"
}
cuda=$name/lib/libaerie_cuda.so
pack "$name" --exclude="$cuda" "$name"
[ ! -e "$stage/$cuda" ] || pack "$name-cuda" "$cuda"
