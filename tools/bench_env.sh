#!/bin/sh
# Makes the virtual environment build/bench-venv with the engines of bench/suite/requirements.txt, once, and again when that file changes.
set -eu
cd "$(dirname "$0")/.."
venv=build/bench-venv
wanted=bench/suite/requirements.txt
cmp -s "$wanted" "$venv/installed.txt" && exit 0

echo "bench_env: making $venv" >&2
mkdir -p build
rm -rf "$venv" "$venv.new"
python3 -m venv "$venv.new"
"$venv.new/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 -r "$wanted"
# Nothing in it is started by its absolute path, so that it may be moved when it is complete.
mv "$venv.new" "$venv"
cp "$wanted" "$venv/installed.txt"
