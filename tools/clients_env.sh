#!/bin/sh
# Makes the virtual environment build/clients-venv with tests/clients/requirements.txt: published programs that call ONNX Runtime, to run
# them on Sardonyx instead. Once, and again when that file changes. Without a connection to the package index it says so and ends well: the
# tests are then skipped.
set -eu
cd "$(dirname "$0")/.."
venv=build/clients-venv
wanted=tests/clients/requirements.txt
cmp -s "$wanted" "$venv/installed.txt" && exit 0

echo "clients_env: making $venv" >&2
mkdir -p build
rm -rf "$venv.new"
python3 -m venv "$venv.new"
if ! "$venv.new/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 --no-deps -r "$wanted"; then
  echo "clients_env: the packages of $wanted cannot be installed (no connection to the package index?); the tests of published programs are skipped" >&2
  rm -rf "$venv.new"
  exit 0
fi
rm -rf "$venv"
mv "$venv.new" "$venv"
cp "$wanted" "$venv/installed.txt"
