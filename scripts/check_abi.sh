#!/usr/bin/env bash
# Checks that programs built against an earlier libaerie.so still work: compares the functions and types of aerie.h with
# src/api/aerie.abi. New functions, new enumerators and new fields at the end of structs are allowed; removals, moves
# and changes are not. Needs abidw and abidiff (scripts/setup.sh --package).
#
# check_abi.sh --renew writes src/api/aerie.abi again: after every release, so that its additions are checked from then
# on; and after a change that breaks programs on purpose, together with the major number of the library.
#
# It compares a library of src/api alone, which has everything that libaerie.so exports (test api_symbols): debug
# information for the rest would take minutes.
set -euo pipefail
cd "$(dirname "$0")/.."
baseline=src/api/aerie.abi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "check_abi: $*" >&2
  exit 1
}
command -v abidw >/dev/null && command -v abidiff >/dev/null || fail 'needs abidw and abidiff (scripts/setup.sh --package)'

# Dependencies of the target are not compiled.
{
  cmake -S . -B build-abi -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-g \
    -DCMAKE_OPTIMIZE_DEPENDENCIES=ON -DAERIE_TESTS=OFF -DAERIE_CUDA=OFF -DAERIE_VULKAN=OFF && cmake --build build-abi --target aerie_api
} >"$work/log" 2>&1 || { tail -30 "$work/log" >&2; fail 'src/api could not be built'; }
mkdir "$work/headers"
cp src/api/aerie.h "$work/headers"
# No function has an enumeration with values in int32_t fields as a type; the functions made here do.
{
  echo '#include "aerie.h"'
  sed -nE 's/^typedef enum (\w+).*/extern "C" AERIE_API void \1_values(\1) {}/p' src/api/aerie.h
  echo 'extern "C" AERIE_API void aerie_text_values(decltype(AERIE_TEXT_START)) {}'
} >"$work/values.cpp"
(cd "$work" && c++ -g -fPIC -Iheaders -c values.cpp)
c++ -shared -o "$work/libaerie.so" "$work/values.o" -Wl,--whole-archive build-abi/src/api/libaerie_api.a \
  -Wl,--no-whole-archive -Wl,-soname,libaerie.so.0 -Wl,--version-script=src/api/aerie.map

abidw --headers-dir "$work/headers" --drop-private-types --exported-interfaces-only --no-corpus-path --no-comp-dir-path \
  --no-show-locs --no-elf-needed --type-id-style hash --out-file "$work/aerie.abi" "$work/libaerie.so"
[ "$(grep -c '<function-decl name=.aerie_' "$work/aerie.abi")" -gt 30 ] || fail 'abidw found too few functions'
if [ "${1:-}" = --renew ]; then
  cp "$work/aerie.abi" "$baseline"
  echo "$baseline: $(grep -c '<elf-symbol ' "$baseline") functions, $(wc -c <"$baseline") bytes"
  exit
fi

cat >"$work/allowed" <<'END'
[suppress_type]
  type_kind = struct
  has_data_member_inserted_at = end
END
# The exit status reports every change that is not allowed.
abidiff --no-added-syms --suppressions "$work/allowed" "$baseline" "$work/aerie.abi" >"$work/report" || {
  cat "$work/report" >&2
  fail "programs that were built against an earlier library would not work with this one ($baseline)"
}
echo "$(grep -c '<elf-symbol ' "$work/aerie.abi") functions: programs built against $baseline go on to work"
