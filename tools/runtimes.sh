#!/bin/sh
# Installs the runtimes of tests/bridge/runtimes.txt into build/runtimes/, each once, and again when its line changes. Runtimes that cannot be
# installed (no connection to the package index, no wheel for this machine) are skipped with a message, and so are their tests.
set -eu
cd "$(dirname "$0")/.."
list=tests/bridge/runtimes.txt
into=build/runtimes

missing=""
while read -r name python packages; do
  case "$name" in "" | "#"*) continue ;; esac
  [ "$(cat "$into/$name/installed.txt" 2>/dev/null)" = "$python $packages" ] || missing="$missing $name"
done < "$list"
[ -z "$missing" ] && exit 0

mkdir -p "$into"
tools/venv.sh "$into/venv" /dev/null || { echo "runtimes: no virtual environment can be made; the tests of vendors' libraries are left out" >&2; exit 0; }
while read -r name python packages <&3; do
  case " $missing " in *" $name "*) ;; *) continue ;; esac
  echo "runtimes: installing $packages into $into/$name" >&2
  rm -rf "$into/$name.new"
  other=""
  [ "$python" = "-" ] || other="--python-version $python"
  # Only the libraries are wanted, not what the Python packages need beside them. A line may name several packages.
  # shellcheck disable=SC2086
  if "$into/venv/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 --no-deps --only-binary=:all: \
      $other --target "$into/$name.new" $packages; then
    rm -rf "${into:?}/$name"
    echo "$python $packages" > "$into/$name.new/installed.txt"
    mv "$into/$name.new" "$into/$name"
  else
    echo "runtimes: $packages cannot be installed (no connection to the package index, or no wheel for this machine); its tests are skipped" >&2
    rm -rf "$into/$name.new"
  fi
done 3< "$list"
