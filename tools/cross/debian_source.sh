#!/bin/sh
# debian_source.sh SOURCE FOLDER: unpacks the original files of Debian's source package SOURCE, without Debian's changes, into FOLDER, once, and
# Debian's notes on licences and versions into FOLDER/debian. The servers are those of the system's own list; the system's lists and packages
# are not changed. Downloads are kept in build/debian-sources.
set -eu
name=$1
folder=$2
[ -e "$folder" ] && exit 0
apt=$(cd "$(dirname "$0")/../.." && pwd)/build/debian-sources

# apt_for_sources PROGRAM ARGUMENT...
apt_for_sources() {
  program=$1
  shift
  "$program" -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt/parts" -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" \
    -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
}

if [ ! -e "$apt/ready" ]; then
  mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache" "$apt/packages"
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -e "$list" ] && sed -n 's/^deb /deb-src /p' "$list" >"$apt/parts/$(basename "$list" .list).list"
  done
  for list in /etc/apt/sources.list.d/*.sources; do
    [ -e "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" >"$apt/parts/$(basename "$list")"
  done
  apt_for_sources apt-get update
  : >"$apt/ready"
fi

# archive PART: the one of the package's files that is called so.
archive() { find "$apt/packages" -name "${name}_*.$1.tar.*" ! -name '*.asc' | sort | head -n 1; }
# Servers of security updates remove what a newer update replaces: an older version serves as well.
fetched=""
for version in $(apt_for_sources apt-cache showsrc --only-source "$name" | sed -n 's/^Version: //p' | sort -rVu); do
  if (cd "$apt/packages" && apt_for_sources apt-get source --download-only "$name=$version" >/dev/null 2>&1); then
    fetched=1
    break
  fi
done
if [ -z "$fetched" ]; then
  echo "debian_source: the source package $name cannot be fetched (no connection?)" >&2
  exit 1
fi
rm -rf "$folder.new"
mkdir -p "$folder.new"
tar -C "$folder.new" --strip-components=1 -xf "$(archive orig)"
rm -rf "$folder.new/debian"
mkdir "$folder.new/debian"
if [ -n "$(archive debian)" ]; then
  tar -C "$folder.new" -xf "$(archive debian)" debian/copyright debian/changelog
else  # the older format, in which Debian's files are a patch: of it, these alone
  gzip -dc "$(find "$apt/packages" -name "${name}_*.diff.gz" | sort | head -n 1)" |
    awk '/^--- / { next } /^\+\+\+ / { file = $2; sub(/^[^\/]*\//, "", file); next } /^@@/ { next }
      file == "debian/copyright" || file == "debian/changelog" { if (/^\+/) print substr($0, 2) >(folder "/" file) }' folder="$folder.new"
fi
mv "$folder.new" "$folder"
