#!/usr/bin/env bash
# Unpacks the source of a package of Debian 12 or 13 below the user's cache: fetch_source.sh RELEASE NAME makes
# ~/.cache/aerie/debianRELEASE/source/NAME, with Debian's patches. apt checks signatures before anything is unpacked.
# Does nothing if the folder exists; if it fails, it prints the reason in one line on stdout. Needs apt and dpkg-dev,
# not root.
set -euo pipefail
release=$1 name=$2
root=${XDG_CACHE_HOME:-$HOME/.cache}/aerie/debian$release/source
[ ! -d "$root/$name" ] || exit 0

. "$(dirname "$0")/own_apt.sh"
command -v dpkg-source >/dev/null || fail 'no dpkg-source here'
# Suites of updates are left out: their older sources vanish while lists still name them.
start_apt "$root" deb-src "$(codename_of "$release")"
echo "unpacking the source of $name into $root" >&2
cd "$work"
apt source --download-only "$name"
dpkg-source --no-check -x ./*.dsc tree >>log 2>&1 || fail "$(tail -1 log)"
mv "$work/tree" "$root/$name"
