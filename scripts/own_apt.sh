# For scripts that unpack Debian's packages without installing them: an apt of its own in a folder $work, which uses the
# mirror that this machine's apt is set up for, and ignores what is installed here. To be sourced.

fail() {
  echo "$*"
  exit 1
}
command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || fail 'no apt here'

codename_of() {
  case $1 in
    12) echo bookworm ;;
    13) echo trixie ;;
  esac
}

# take_entry TYPE SUITE...: writes the entry of this machine's apt for Debian's archive (its mirror, options and
# keyring) as one of this type (deb, deb-src) with these suites.
take_entry() {
  local type=$1 entry suite uri file other
  shift
  while read -r entry suite uri; do
    case $suite in bookworm | trixie | forky | sid | oldstable | stable | testing | unstable) ;; *) continue ;; esac
    case $uri in cdrom:*) continue ;; esac
    file=${entry%:*}
    if [ "${file##*.}" = sources ]; then
      awk -v RS= -v suite="$suite" -v suites="$*" -v type="$type" '
        /(^|\n)Enabled: *no/ || !match($0, /(^|\n)Suites:[^\n]*/) { next }
        (substr($0, RSTART, RLENGTH) " ") ~ ("[ :]" suite " ") {
          sub(/Suites:[^\n]*/, "Suites: " suites)
          sub(/Types:[^\n]*/, "Types: " type)
          print
          exit
        }' "$file" >"$work/sources/debian.sources"
    else
      for other in "$@"; do
        sed -nE "s#^\s*deb(\s+(\[[^]]*\]\s*)?\S+\s+)$suite(\s.*)\$#$type\1$other\3#p" "$file" | head -1
      done >"$work/sources/debian.list"
    fi
    return
  done < <(apt-get indextargets --format '$(SOURCESENTRY) $(RELEASE) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null)
  fail "apt here has no source of Debian's archive"
}

apt() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" -o Dir::State="$work" \
    -o Dir::State::Lists="$work/lists" -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" \
    -o APT::Architectures="$(dpkg --print-architecture)" -o APT::Sandbox::User= -o APT::Update::Error-Mode=any \
    -o Acquire::Languages=none -o Debug::NoLocking=1 "$@" >"$work/log" 2>&1 ||
    fail "$(grep -m1 '^[EW]:' "$work/log" || echo 'apt-get failed')"
}

# start_apt FOLDER TYPE SUITE...: prepares apt with the package lists, as if nothing was installed. Makes $work in the
# folder, which exists until the script ends.
start_apt() {
  mkdir -p "$1"
  work=$(mktemp -d "$1/.work.XXXXXX")
  shift
  trap 'rm -rf "$work"' EXIT
  mkdir -p "$work"/{sources,lists/partial,cache/archives/partial}
  touch "$work/status"
  take_entry "$@"
  apt update
}
