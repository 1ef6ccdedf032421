#!/bin/sh
# Installs the packages of tools/packages.txt that are missing; needs root or sudo only then. `setup.sh PURPOSE...` installs only those for
# these purposes: demo (what every build needs), command (all that is installed), python (`pip install .`). Without one, or with `tests`:
# all packages.
set -eu
cd "$(dirname "$0")"
all=""
[ $# -gt 0 ] || all=1
for purpose in "$@"; do
  case $purpose in
    tests) all=1 ;;
    demo | command | python) ;;
    *) echo "setup: unknown purpose $purpose; there are demo, command, python and tests" >&2; exit 2 ;;
  esac
done
# shellcheck disable=SC2046
exec ./install.sh setup $(awk -v wanted="$*" -v all="$all" '
  BEGIN { count = split(wanted, purposes, " ") }
  /^#/ { next }
  all { print $1; next }
  { for (i = 1; i <= count; i++) if (("," $2 ",") ~ ("," purposes[i] ",")) { print $1; next } }' packages.txt)
