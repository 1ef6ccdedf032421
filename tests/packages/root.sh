#!/bin/sh
# root.sh ROOT: makes, once, a bare Debian 12 in the folder ROOT, for tests of packages. Needs root and debootstrap.
set -eu
root=$1
[ -e "$root/made-of.txt" ] && exit 0
[ "$(id -u)" -eq 0 ] || { echo "root.sh: making a bare system needs root" >&2; exit 1; }
mkdir -p "$(dirname "$root")"
rm -rf "$root.new"
echo "root.sh: making $root" >&2
debootstrap --variant=minbase bookworm "$root.new" >"$root.log" 2>&1 || { tail -n 20 "$root.log" >&2; rm -rf "$root.new"; exit 1; }
rm -rf "$root.new/var/cache/apt/archives"/*.deb
echo bookworm >"$root.new/made-of.txt"
rm -rf "$root"
mv "$root.new" "$root"
