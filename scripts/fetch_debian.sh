#!/usr/bin/env bash
# Unpacks packages of Debian 13 (with backports) and all that they need below the user's cache, installing nothing:
# fetch_debian.sh NAME PACKAGE... makes ~/.cache/aerie/debian13/NAME with the packages' programs in its bin; its
# `run PROGRAM ARGUMENT...` starts any program with its libraries. Does nothing where it is there. Needs apt, not root.
set -euo pipefail
name=$1
shift
root=${XDG_CACHE_HOME:-$HOME/.cache}/aerie/debian13
folder=$root/$name
[ -x "$folder/run" ] && exit 0
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null
mkdir -p "$root"
work=$(mktemp -d "$root/.$name.XXXXXX")
trap 'rm -rf "$work"' EXIT

# An apt of its own: its sources, its lists, and nothing installed yet.
mkdir -p "$work"/{sources,lists/partial,cache/archives/partial,root}
touch "$work/status"
cat >"$work/sources/debian.sources" <<'SOURCES'
Types: deb
URIs: http://deb.debian.org/debian
Suites: trixie trixie-backports
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCES
apt() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" -o Dir::State="$work" \
    -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
    -o APT::Architectures="$(dpkg --print-architecture)" -o APT::Sandbox::User= -o APT::Update::Error-Mode=any -o Debug::NoLocking=1 "$@" \
    >"$work/log" 2>&1 && return
  echo "fetch_debian: $name: $(grep -m1 '^[EW]:' "$work/log" || echo 'apt-get failed')" >&2
  exit 1
}
apt update
apt install -y --download-only --no-install-recommends -t trixie-backports "$@"
for package in "$work"/cache/archives/*.deb; do dpkg-deb -x "$package" "$work/root"; done

loader=$(cd "$work/root" && ls usr/lib/*/ld-linux*.so.* | head -1)
cat >"$work/root/run" <<RUN
#!/bin/sh
exec "$folder/$loader" --library-path "$folder/$(dirname "$loader")\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}" "\$@"
RUN
chmod +x "$work/root/run"
mkdir "$work/root/bin"
for program in "$work"/root/usr/bin/*; do
  wrapper=$work/root/bin/${program##*/}
  printf '#!/bin/sh\nexec "%s/run" "%s/usr/bin/%s" "$@"\n' "$folder" "$folder" "${program##*/}" >"$wrapper"
  chmod +x "$wrapper"
done
mv "$work/root" "$folder"
