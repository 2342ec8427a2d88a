#!/usr/bin/env bash
# Makes the archive for Windows (packaging/windows.sh), unpacks it, and runs under Wine what is in it. Needs what setup.sh
# --windows installs, and build/aerie, with which the texts are compared.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "check_windows: $*" >&2
  exit 1
}
command -v wine >/dev/null || fail 'needs wine: scripts/setup.sh --windows'
[ -x build/aerie ] || fail 'needs build/aerie: scripts/test.sh'
archive=$(packaging/windows.sh build-windows/dist)
unpacked=build-windows/unpacked
rm -rf $unpacked
mkdir $unpacked
cmake -E chdir $unpacked cmake -E tar xf "$PWD/$archive"
python3 tests/windows/windows_test.py $unpacked/* build-windows/programs build-windows/run build/aerie
