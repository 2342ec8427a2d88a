#!/usr/bin/env bash
# Compiles for Windows what is meant to run there, with x86_64-w64-mingw32 (posix threads): every source of src/core,
# src/backend, src/io, src/text, backends/cpu (all its instruction sets) and backends/vulkan. Nothing is linked or run.
set -euo pipefail
cd "$(dirname "$0")/.."

compiler=x86_64-w64-mingw32-g++-posix
command -v $compiler >/dev/null || {
  echo "check_windows: needs $compiler (g++-mingw-w64-x86-64-posix)" >&2
  exit 1
}
# Headers of libraries that are the same on every system come last: the system's own must not be found.
flags=(-std=c++20 -O0 -c -o /dev/null -Wall -Wextra -Werror -Wno-unused-parameter -Isrc -Ibackends -Ishaders -DVK_NO_PROTOTYPES -idirafter /usr/include)
# As in backends/cpu/CMakeLists.txt.
isa_flags() {
  case $1 in
    avx2) echo -mavx2 -mfma -mf16c ;;
    avxvnni) echo -mavx2 -mfma -mf16c -mavxvnni ;;
    avx512) echo -mavx512f -mavx512bw -mavx512vnni -mavx2 -mfma -mf16c -Wno-uninitialized -Wno-maybe-uninitialized ;;
  esac
}

mapfile -t sources < <(ls src/{core,backend,io,text,text/jinja}/*.cpp backends/cpu/*.cpp backends/cpu/ops/*.cpp backends/vulkan/*.cpp \
  backends/vulkan/ops/*.cpp | grep -v _posix.cpp)
[ ${#sources[@]} -gt 80 ] || { echo "check_windows: only ${#sources[@]} sources found" >&2; exit 1; }
jobs=()
for source in "${sources[@]}"; do
  if grep -q AERIE_ISA "$source"; then
    for isa in portable avx2 avxvnni avx512; do jobs+=("-DAERIE_ISA=$isa $(isa_flags $isa) $source"); done
  else
    jobs+=("$source")
  fi
done
printf '%s\n' "${jobs[@]}" | xargs -P "$(nproc)" -d '\n' -I{} sh -c "$compiler ${flags[*]} {} || { echo 'check_windows: {}' >&2; exit 255; }"
echo "${#jobs[@]} sources compile for Windows"
