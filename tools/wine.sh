#!/bin/sh
# wine.sh PROGRAM.exe ARGUMENT...: runs a Windows program under Wine, with a prefix of its own in build/, without a window and Wine's remarks.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
WINEPREFIX=${WINEPREFIX:-$root/build/wine}
WINEDEBUG=${WINEDEBUG:--all}
WINEDLLOVERRIDES=${WINEDLLOVERRIDES:-mscoree,mshtml=}  # else the first start asks about .NET and a browser
export WINEPREFIX WINEDEBUG WINEDLLOVERRIDES
export LC_ALL=C.UTF-8  # in which Wine takes names of files
wine=/usr/lib/wine/wine64
[ -x "$wine" ] || wine=$(command -v wine64)
mkdir -p "$(dirname "$WINEPREFIX")"
exec "$wine" "$@"
