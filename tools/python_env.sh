#!/bin/sh
# Creates the virtual environment build/python-venv with tests/python/requirements.txt and, in its folder onnx-data, the test data of
# tests/conformance/requirements.txt; does so again when one of these files changes. Without a connection to the package index it prints a
# message and succeeds; the build then omits the Python package and its tests.
set -eu
cd "$(dirname "$0")/.."
venv=build/python-venv
wanted=tests/python/requirements.txt
data=tests/conformance/requirements.txt
if ! tools/venv.sh "$venv" "$wanted"; then
  echo "python_env: the packages of $wanted cannot be installed (no connection to the package index?); the Python package and its tests are left out" >&2
  exit 0
fi
# Only test data, in a folder from which no interpreter imports: the environment itself has a newer onnx.
into=$venv/onnx-data
cmp -s "$data" "$into/installed.txt" && exit 0
rm -rf "$into" "$venv/onnx-all"
mkdir -p "$into/onnx/backend/test"
if "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --retries 2 --timeout 20 --no-deps --only-binary :all: \
  --target "$venv/onnx-all" -r "$data"; then
  mv "$venv/onnx-all/onnx/backend/test/data" "$into/onnx/backend/test/data"
else
  echo "python_env: the packages of $data cannot be installed; their test data are left out" >&2
fi
rm -rf "$venv/onnx-all"
cp "$data" "$into/installed.txt"
