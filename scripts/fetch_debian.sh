#!/usr/bin/env bash
# Unpacks packages of Debian 12 or 13 (with backports) and all that they need below the user's cache, installing
# nothing: fetch_debian.sh RELEASE NAME PACKAGE... makes ~/.cache/aerie/debianRELEASE/NAME with the packages' programs
# in its bin; its `run PROGRAM ARGUMENT...` starts any program with its libraries. Does nothing where it is there;
# where it cannot, says why in one line on stdout. Needs apt, not root, and takes the mirror that apt is set up for.
set -euo pipefail
release=$1 name=$2
shift 2
case $release in
  12) codename=bookworm ;;
  13) codename=trixie ;;
esac
root=${XDG_CACHE_HOME:-$HOME/.cache}/aerie/debian$release
folder=$root/$name
[ -x "$folder/run" ] && exit 0

fail() {
  echo "$*"
  exit 1
}
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail 'no apt here'
mkdir -p "$root"
work=$(mktemp -d "$root/.$name.XXXXXX")
trap 'rm -rf "$work"' EXIT

# The entry that this machine's apt has for Debian's archive (its mirror, its options, its keyring), with other suites.
copy_entry() {
  local entry suite uri file
  while read -r entry suite uri; do
    case $suite in bookworm | trixie | forky | sid | oldstable | stable | testing | unstable) ;; *) continue ;; esac
    case $uri in cdrom:*) continue ;; esac
    file=${entry%:*}
    if [ "${file##*.}" = sources ]; then
      awk -v RS= -v suite="$suite" -v suites="$codename $codename-backports" '
        /(^|\n)Enabled: *no/ || !match($0, /(^|\n)Suites:[^\n]*/) { next }
        (substr($0, RSTART, RLENGTH) " ") ~ ("[ :]" suite " ") {
          sub(/Suites:[^\n]*/, "Suites: " suites)
          sub(/Types:[^\n]*/, "Types: deb")
          print
          exit
        }' "$file" >"$work/sources/debian.sources"
    else
      for other in "$codename" "$codename-backports"; do
        sed -nE "s#^\s*(deb\s+(\[[^]]*\]\s*)?\S+\s+)$suite(\s.*)\$#\1$other\3#p" "$file" | head -1
      done >"$work/sources/debian.list"
    fi
    return
  done < <(apt-get indextargets --format '$(SOURCESENTRY) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null)
  fail "apt here has no source of Debian's archive"
}

# An apt of its own: its sources, its lists, and nothing installed yet.
mkdir -p "$work"/{sources,lists/partial,cache/archives/partial,root}
touch "$work/status"
copy_entry
apt() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" -o Dir::State="$work" \
    -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
    -o APT::Architectures="$(dpkg --print-architecture)" -o APT::Sandbox::User= -o APT::Update::Error-Mode=any \
    -o Acquire::Languages=none -o Debug::NoLocking=1 "$@" >"$work/log" 2>&1 ||
    fail "$(grep -m1 '^[EW]:' "$work/log" || echo 'apt-get failed')"
}
apt update
echo "unpacking $* of $codename-backports into $folder" >&2
apt install -y --download-only --no-install-recommends -t "$codename-backports" "$@"

# Libraries of this system's own release go along with its C library; those of another bring theirs.
own=$(. /etc/os-release && [ "${ID:-}${VERSION_ID:-}" = "debian$release" ] && echo yes || true)
for package in "$work"/cache/archives/*.deb; do
  case $own${package##*/} in yeslibc6_* | yeslibgcc-s1_* | yeslibstdc++6_*) continue ;; esac
  dpkg-deb -x "$package" "$work/root"
done
# Debian 12's packages know two folders of libraries.
[ ! -d "$work/root/lib" ] || { cp -a "$work/root/lib" "$work/root/usr" && rm -r "$work/root/lib"; }
libraries=$(cd "$work/root" && ls -d usr/lib/*-linux-gnu* | head -1)
search="\"$folder/$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}\""
if [ "$own" ]; then
  start="env LD_LIBRARY_PATH=$search"
else
  start="\"$folder/$(cd "$work/root" && ls "$libraries"/ld-linux*.so.* | head -1)\" --library-path $search"
fi
mkdir "$work/root/bin"
# start_script FILE WORDS: a script that hands its arguments on.
start_script() { printf '#!/bin/sh\nexec %s "$@"\n' "$2" >"$1" && chmod +x "$1"; }
start_script "$work/root/run" "$start"
for program in "$work"/root/usr/bin/*; do
  [ ! -x "$program" ] ||
    start_script "$work/root/bin/${program##*/}" "\"$folder/run\" \"$folder/usr/bin/${program##*/}\""
done
mv "$work/root" "$folder"
