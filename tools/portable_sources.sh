#!/bin/sh
# For portable builds (docs/design/portable.md): unpacks into build/portable-sources the source of cpp-httplib, which Debian has neither as a static
# library nor as headers alone.
set -eu
cd "$(dirname "$0")/.."
sources=build/portable-sources
[ -e "$sources/cpp-httplib/httplib.h" ] && exit 0

echo "portable_sources: fetching cpp-httplib" >&2
apt=$PWD/build/portable-apt
rm -rf "$apt" "$sources.new"
mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial" "$sources.new/cpp-httplib"
# The system's own list of servers, asked for sources.
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
  [ -e "$list" ] && sed -n 's/^deb /deb-src /p' "$list" >"$apt/parts/$(basename "$list" .list).list"
done
for list in /etc/apt/sources.list.d/*.sources; do
  [ -e "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" >"$apt/parts/$(basename "$list")"
done
apt_for_sources() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt/parts" -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
}
if apt_for_sources update && (cd "$apt" && apt_for_sources source --download-only cpp-httplib) >/dev/null; then
  tar -C "$sources.new/cpp-httplib" --strip-components=1 -xf "$apt"/cpp-httplib_*.orig.tar.*
  rm -rf "$sources" "$apt"
  mv "$sources.new" "$sources"
else
  echo "portable_sources: the source of cpp-httplib cannot be fetched (no connection?)" >&2
  rm -rf "$apt" "$sources.new"
  exit 1
fi
