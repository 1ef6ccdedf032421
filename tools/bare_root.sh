#!/bin/sh
# bare_root.sh [SUITE ...]: for tests/wheel: creates, once, build/bare-SUITE, a Debian with only Python and NumPy (build/bare-debian for
# bookworm, which is the default), and for each further Python on this machine build/bare-numpy/VERSION with a NumPy for it. What cannot be
# created (not root, no debootstrap, no connection) is skipped with a message, and so are its tests.
set -eu
cd "$(dirname "$0")/.."
packages=python3,python3-pip,python3-numpy
[ $# -gt 0 ] || set -- bookworm
for suite in "$@"; do
  root=build/bare-$suite
  [ "$suite" = bookworm ] && root=build/bare-debian
  [ "$(cat "$root/made-of.txt" 2>/dev/null)" = "$packages" ] && continue
  if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
    echo "bare_root: $root needs root and debootstrap; the tests in a bare system are left out" >&2
    exit 0
  fi
  echo "bare_root: making $root" >&2
  mkdir -p build
  rm -rf "$root.new"
  if debootstrap --variant=minbase --include="$packages" "$suite" "$root.new" >"$root.log" 2>&1; then
    rm -rf "$root" "$root.new/var/cache/apt" "$root.new/var/lib/apt/lists"
    echo "$packages" >"$root.new/made-of.txt"
    mv "$root.new" "$root"
  else
    echo "bare_root: debootstrap failed (no connection?), see $root.log; the tests in a bare system are left out" >&2
    rm -rf "$root.new"
    exit 0
  fi
done

for version in 3.9 3.10 3.11 3.12 3.13 3.14; do
  python=$(tests/wheel/find_python.sh "$version") || continue
  into=build/bare-numpy/$version
  [ -e "$into/numpy" ] && continue
  echo "bare_root: installing NumPy for $python" >&2
  rm -rf "$into.new"
  mkdir -p build/bare-numpy
  if "$python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 --only-binary :all: --target "$into.new" numpy; then
    rm -rf "$into"
    mv "$into.new" "$into"
  else
    echo "bare_root: there is no NumPy for $python; the wheel is not tested with it" >&2
    rm -rf "$into.new"
  fi
done
