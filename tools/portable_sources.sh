#!/bin/sh
# For portable builds (docs/design/portable.md): unpacks into build/portable-sources the source of cpp-httplib, which Debian has neither as a static
# library nor as headers alone.
set -eu
cd "$(dirname "$0")/.."
sources=build/portable-sources
[ -e "$sources/cpp-httplib/httplib.h" ] && exit 0
echo "portable_sources: fetching cpp-httplib" >&2
mkdir -p "$sources"
rm -rf "$sources/cpp-httplib"
exec tools/cross/debian_source.sh cpp-httplib "$PWD/$sources/cpp-httplib"
