#!/bin/sh
# Makes the virtual environment build/python-venv with tests/python/requirements.txt, and in its folder onnx-data the test data of
# tests/conformance/requirements.txt, once, and again when one of these files changes. Without a connection to the package index it says
# so and ends well: the build then leaves the Python package and its tests out.
set -eu
cd "$(dirname "$0")/.."
venv=build/python-venv
wanted=tests/python/requirements.txt
data=tests/conformance/requirements.txt
cat "$wanted" "$data" 2>/dev/null | cmp -s - "$venv/installed.txt" && exit 0

echo "python_env: making $venv" >&2
mkdir -p build
rm -rf "$venv.new"
python3 -m venv "$venv.new"
if ! "$venv.new/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 -r "$wanted"; then
  echo "python_env: the packages of $wanted cannot be installed (no connection to the package index?); the Python package and its tests are left out" >&2
  rm -rf "$venv.new"
  exit 0
fi
# Test data alone, in a folder that no interpreter imports from: the environment itself has a newer onnx.
if "$venv.new/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 --no-deps --only-binary :all: \
  --target "$venv.new/onnx-all" -r "$data"; then
  mkdir -p "$venv.new/onnx-data/onnx/backend/test"
  mv "$venv.new/onnx-all/onnx/backend/test/data" "$venv.new/onnx-data/onnx/backend/test/data"
else
  echo "python_env: the packages of $data cannot be installed; their test data are left out" >&2
fi
rm -rf "$venv.new/onnx-all"
# Nothing in it that the project uses starts by an absolute path, so that it may be moved when it is complete.
rm -rf "$venv"
mv "$venv.new" "$venv"
cat "$wanted" "$data" >"$venv/installed.txt"
