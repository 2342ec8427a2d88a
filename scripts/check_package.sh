#!/usr/bin/env bash
# Builds the Debian packages from a copy of the tree, without network, as `cp -r packaging/debian debian` and
# dpkg-buildpackage do; then runs lintian, and tries the unpacked program, library and manual pages. check_package.sh
# [FOLDER]: leaves the packages there. Needs scripts/setup.sh --package.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$(mkdir -p "${1:-.}" && cd "${1:-.}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "check_package: $*" >&2
  exit 1
}
for tool in dpkg-buildpackage dh lintian unshare groff; do
  command -v $tool >/dev/null || fail "needs $tool (scripts/setup.sh --package)"
done

# Files that are tracked or new, and not ignored.
source=$work/aerie
mkdir "$source"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do
  [ ! -e "$file" ] || printf '%s\0' "$file"
done | tar --null -T - -c | tar -x -C "$source"
cp -r "$source/packaging/debian" "$source/debian"

# A namespace without network makes sure that none is used.
alone=(unshare --net)
[ "$(id -u)" -eq 0 ] || alone=(unshare --map-root-user --net)
# Debug information, which goes into packages of its own, and strong compression would make it slower. dh has its own
# home folder, so the compiler's cache is named; it ignores the folder of this copy.
start=$SECONDS
(cd "$source" && CCACHE_BASEDIR=$source CCACHE_NOHASHDIR=1 CCACHE_DIR="${CCACHE_DIR:-$HOME/.cache/ccache}" \
  DEB_CXXFLAGS_STRIP=-g DEB_BUILD_OPTIONS="noautodbgsym parallel=$(nproc)" DPKG_DEB_COMPRESSOR_LEVEL=1 \
  "${alone[@]}" dpkg-buildpackage -b -us -uc) >"$work/log" 2>&1 || {
  tail -40 "$work/log" >&2
  fail 'dpkg-buildpackage failed'
}
echo "packages built in $((SECONDS - start)) s"
grep '^dpkg-.*warning' "$work/log" || true

lintian --allow-root --fail-on error --tag-display-limit 0 "$work"/aerie_*.changes >"$work/lintian" 2>&1 || {
  cat "$work/lintian" >&2
  fail 'lintian found errors'
}
grep '^[EW]:' "$work/lintian" || echo 'lintian: no errors, no warnings'

root=$work/root
for package in "$work"/*.deb; do dpkg -x "$package" "$root"; done
libraries=$(dirname "$(find "$root" -name 'libaerie.so.?')")

# The unit is the documented one, with its limits.
unit=$(find "$root" -name 'aerie@.service')
cmp "$unit" examples/replicas/aerie@.service || fail 'the package has no unit, or another one'
for limit in MemoryMax TasksMax LimitCORE; do
  grep -q "^$limit=" "$unit" || fail "the unit has no $limit"
done

# No file contains the path of the build folder, and no file has a library path of its own.
! grep -rlF "$source" "$root" || fail 'these files name the folder in which they were built'
for file in "$root/usr/bin/aerie" "$libraries"/libaerie.so.?; do
  ! readelf -d "$file" | grep -E 'R(UN)?PATH' || fail "$file has a path of libraries"
done

# Tries the program and its model, then a program that is built against the library and its headers.
run() { (cd "$work" && env -i PATH="$PATH" HOME="$work" LD_LIBRARY_PATH="$libraries" "$@"); }
version=$(run "$root/usr/bin/aerie" --version)
[ "$version" = "aerie $(sed -n 's/^project(aerie VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)" ] || fail "its version: $version"
run "$root/usr/bin/aerie" info aerie-tiny | grep -qF "$root/usr/share/aerie/models" || fail 'the packaged model was not found'
python3 - tests/data/greedy.json "$work" <<'END'
import json, sys
entry = json.load(open(sys.argv[1], encoding="utf-8"))[0]
open(sys.argv[2] + "/prompt", "w", encoding="utf-8").write(entry["prompt"])
json.dump(entry["ids"][:20], open(sys.argv[2] + "/wanted", "w", encoding="utf-8"))
END
run "$root/usr/bin/aerie" generate -m aerie-tiny --device cpu -f prompt -n 20 --json -q >"$work/answer"
python3 - "$work" <<'END' || fail 'the packaged program says something else'
import json, sys
answer, wanted = (json.load(open(f"{sys.argv[1]}/{name}", encoding="utf-8")) for name in ("answer", "wanted"))
sys.exit(answer["ids"] != wanted)
END
run cc -std=c99 -O2 "$PWD/examples/minimal.c" -o minimal $(PKG_CONFIG_PATH="$libraries/pkgconfig" pkg-config --cflags --libs aerie)
run ./minimal aerie-tiny "Once upon a time" >"$work/library"
run "$root/usr/bin/aerie" generate -m aerie-tiny --device cpu -p "Once upon a time" -n 64 -q >"$work/program"
cmp "$work/library" "$work/program" || fail 'the packaged library says something else than the program'

pages=0
while IFS= read -r page; do
  complaints=$(zcat "$page" | groff -mandoc -Tutf8 -ww 2>&1 >/dev/null)
  [ -z "$complaints" ] || fail "$page: $complaints"
  pages=$((pages + 1))
done < <(find "$root/usr/share/man" -name '*.gz')
commands=$(run "$root/usr/bin/aerie" --help | sed -n '/^Subcommands:/,/^$/p' | grep -c '^  [a-z]')
[ "$pages" -eq $((commands + 2)) ] || fail "$pages manual pages for $commands commands, the program and the library"

[ $# -eq 0 ] || cp "$work"/*.deb "$packages"
echo "$(ls "$work"/*.deb | wc -l) packages, $pages manual pages: program and library say what they ought to"
