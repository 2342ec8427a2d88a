#!/usr/bin/env bash
# Unpacks packages of Debian 12 or 13 (with backports) and their dependencies below the user's cache, without installing
# anything: fetch_debian.sh RELEASE NAME PACKAGE... makes ~/.cache/aerie/debianRELEASE/NAME with the packages' programs
# in its bin; its `run PROGRAM ARGUMENT...` starts any program with its libraries. Does nothing if the folder exists; if
# it fails, it prints the reason in one line on stdout. Needs apt, not root, and uses the mirror that apt is set up for.
# With --alone before RELEASE the packages come without dependencies, as they are, and without `run`.
set -euo pipefail
alone=
[ "$1" != --alone ] || { alone=yes && shift; }
release=$1 name=$2
shift 2
root=${XDG_CACHE_HOME:-$HOME/.cache}/aerie/debian$release
folder=$root/$name
[ ! -d "$folder" ] || exit 0

. "$(dirname "$0")/own_apt.sh"
codename=$(codename_of "$release")
start_apt "$root" deb "$codename" "$codename-backports"
echo "unpacking $* of $codename-backports into $folder" >&2
if [ "$alone" ]; then
  (cd "$work/cache/archives" && apt download "$@")
else
  apt install -y --download-only --no-install-recommends -t "$codename-backports" "$@"
fi

mkdir "$work/root"
# Libraries of this system's own release work with its C library; those of another release bring theirs.
own=$(. /etc/os-release && [ "${ID:-}${VERSION_ID:-}" = "debian$release" ] && echo yes || true)
for package in "$work"/cache/archives/*.deb; do
  case $own${package##*/} in yeslibc6_* | yeslibgcc-s1_* | yeslibstdc++6_*) continue ;; esac
  dpkg-deb -x "$package" "$work/root"
done
if [ "$alone" ]; then
  mv "$work/root" "$folder"
  exit
fi
# Debian 12's packages have libraries in two folders.
[ ! -d "$work/root/lib" ] || { cp -a "$work/root/lib" "$work/root/usr" && rm -r "$work/root/lib"; }
libraries=$(cd "$work/root" && ls -d usr/lib/*-linux-gnu* | head -1)
search="\"$folder/$libraries\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}\""
if [ "$own" ]; then
  start="env LD_LIBRARY_PATH=$search"
else
  start="\"$folder/$(cd "$work/root" && ls "$libraries"/ld-linux*.so.* | head -1)\" --library-path $search"
fi
mkdir "$work/root/bin"
# start_script FILE WORDS: writes a script that passes its arguments on.
start_script() { printf '#!/bin/sh\nexec %s "$@"\n' "$2" >"$1" && chmod +x "$1"; }
start_script "$work/root/run" "$start"
for program in "$work"/root/usr/bin/*; do
  [ ! -x "$program" ] ||
    start_script "$work/root/bin/${program##*/}" "\"$folder/run\" \"$folder/usr/bin/${program##*/}\""
done
mv "$work/root" "$folder"
