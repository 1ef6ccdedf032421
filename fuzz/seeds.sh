#!/bin/sh
# Collects seeds: seeds.sh DESTINATION FOLDER...   Every .onnx file of at most 4 KB below the folders, named by its content.
# Good folders: ONNX's backend test data (Debian: libonnx-testdata, /usr/lib/python3/dist-packages/onnx/backend/test/data/node).
set -eu
destination=$1
shift
mkdir -p "$destination"
find "$@" -name '*.onnx' -type f -size -9 | while read -r file; do
  cp "$file" "$destination/$(sha1sum <"$file" | cut -c1-16)"
done
