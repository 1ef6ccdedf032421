#!/bin/sh
# Makes the virtual environment build/python-venv with tests/python/requirements.txt, once, and again when that file changes. Without a
# connection to the package index it says so and ends well: the build then leaves the Python package and its tests out.
set -eu
cd "$(dirname "$0")/.."
venv=build/python-venv
wanted=tests/python/requirements.txt
cmp -s "$wanted" "$venv/installed.txt" && exit 0

echo "python_env: making $venv" >&2
mkdir -p build
rm -rf "$venv.new"
python3 -m venv "$venv.new"
if ! "$venv.new/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 -r "$wanted"; then
  echo "python_env: the packages of $wanted cannot be installed (no connection to the package index?); the Python package and its tests are left out" >&2
  rm -rf "$venv.new"
  exit 0
fi
# Nothing in it that the project uses starts by an absolute path, so that it may be moved when it is complete.
rm -rf "$venv"
mv "$venv.new" "$venv"
cp "$wanted" "$venv/installed.txt"
