#!/bin/sh
# install.sh NAME PACKAGE...: installs those of Debian's packages that are missing; needs root or sudo only then. NAME is that of the script
# that wants them, for messages. PACKAGE may list alternatives, as in tools/packages.txt: `A>=VERSION|B`. On systems without apt-get it says
# what to install there.
set -eu
name=$1
shift
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
  exec "$(dirname "$0")/install_elsewhere.sh" "$name" "$@"
fi

newline='
'
installed=$newline$(dpkg-query -W -f='${db:Status-Status} ${Package}=${Version}\n' 2>/dev/null || true)$newline
candidates=""

# found LIST PREFIX ALTERNATIVE: whether LIST has the line `PREFIX NAME=VERSION` with a version that is new enough.
found() {
  case $1 in
    *"$newline$2 ${3%%>=*}="*) ;;
    *) return 1 ;;
  esac
  case $3 in *'>='*) ;; *) return 0 ;; esac
  # Not by ${1#...}, which takes seconds for a long list.
  version=$(printf '%s' "$1" | awk -v start="$2 ${3%%>=*}=" 'index($0, start) == 1 { print substr($0, length(start) + 1); exit }')
  dpkg --compare-versions "$version" ge "${3#*>=}"
}

# first_of LIST PREFIX PACKAGE: prints the first of the alternatives that LIST has.
first_of() {
  rest=$3
  while [ -n "$rest" ]; do
    alternative=${rest%%|*}
    if found "$1" "$2" "$alternative"; then
      echo "${alternative%%>=*}"
      return 0
    fi
    case $rest in
      *'|'*) rest=${rest#*|} ;;
      *) rest="" ;;
    esac
  done
  return 1
}

# Sets `candidates` to what apt can install of the packages.
look_up() {
  # shellcheck disable=SC2046
  candidates=$newline$(apt-cache policy $(echo "$@" | tr '|' ' ' | sed 's/>=[^ ]*//g') 2>/dev/null |
    awk '/^[^ ]/ { name = $1; sub(/:.*/, "", name) } /^  Candidate:/ && $2 != "(none)" { print "apt", name "=" $2 }')$newline
}

# Sets `wanted` to the names of the packages to install, and `unknown` to those that apt does not have. Packages without alternatives are
# left to apt-get, which knows more than names.
choose() {
  wanted=""
  unknown=""
  for package in "$@"; do
    case $package in
      *'|') wanted="$wanted $(first_of "$candidates" apt "$package" || true)" ;;
      *'|'* | *'>='*)
        if chosen=$(first_of "$candidates" apt "$package"); then wanted="$wanted $chosen"; else unknown="$unknown $package"; fi
        ;;
      *) wanted="$wanted $package" ;;
    esac
  done
  # shellcheck disable=SC2086,SC2116
  wanted=$(echo $wanted)  # without the spaces of packages that are not wanted
}

missing=""
needed=""  # those of them that cannot be done without
for package in "$@"; do
  if ! first_of "$installed" installed "$package" >/dev/null; then
    missing="$missing $package"
    case $package in *'|') ;; *) needed=1 ;; esac
  fi
done
[ -z "$missing" ] && exit 0
# shellcheck disable=SC2086
look_up $missing
# shellcheck disable=SC2086
choose $missing
[ -n "$needed$wanted" ] || exit 0

root=""
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "$name: packages are missing, and neither root nor sudo is at hand to install them. As root:" >&2
    echo "  apt-get update && apt-get install --no-install-recommends ${wanted:-}$unknown" >&2
    exit 1
  fi
  root="sudo"
fi

if ! $root apt-get update -qq; then
  echo "$name: apt-get update failed; going on with the lists of packages that are here" >&2
fi
# shellcheck disable=SC2086
look_up $missing
# shellcheck disable=SC2086
choose $missing
if [ -n "$unknown" ]; then
  echo "$name: apt has none of these packages (| separates alternatives):$unknown" >&2
  exit 1
fi
[ -n "$wanted" ] || exit 0
echo "$name: installing $wanted" >&2
# shellcheck disable=SC2086
if ! $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=600 \
  $wanted >/dev/null; then
  echo "$name: apt-get could not install them all; the command was" >&2
  echo "  apt-get install --no-install-recommends $wanted" >&2
  exit 1
fi
