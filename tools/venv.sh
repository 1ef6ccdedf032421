#!/bin/sh
# venv.sh VENV REQUIREMENTS [OPTIONS OF PIP]: creates the virtual environment VENV with the packages of the file REQUIREMENTS, once, and again
# when that file changes. If they cannot be installed, the exit code is 1 and the old environment stays.
set -eu
venv=$1
wanted=$2
shift 2
cmp -s "$wanted" "$venv/installed.txt" && exit 0

echo "venv: making $venv" >&2
mkdir -p "$(dirname "$venv")"
rm -rf "$venv.new"
python3 -m venv "$venv.new"
if ! "$venv.new/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 "$@" -r "$wanted"; then
  rm -rf "$venv.new"
  exit 1
fi
# Its scripts contain the path at which it was created, so start its programs as modules of its interpreter.
rm -rf "$venv"
mv "$venv.new" "$venv"
cp "$wanted" "$venv/installed.txt"
