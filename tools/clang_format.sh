#!/bin/sh
# Prints where version 16 of clang-format is: other versions format differently. It is the system's, or else, installed once into
# build/format-venv, that of the Python package clang-format.
set -eu
cd "$(dirname "$0")/.."
for formatter in clang-format-16 clang-format; do
  if "$formatter" --version 2>/dev/null | grep -q ' version 16\.'; then
    command -v "$formatter"
    exit
  fi
done
venv=build/format-venv
tools/venv.sh "$venv" tools/format_requirements.txt || {
  echo "clang_format: the format is that of clang-format 16. No such program is installed, and its Python package cannot be (see above)" >&2
  exit 1
}
for formatter in "$venv"/lib/python*/site-packages/clang_format/data/bin/clang-format; do
  echo "$PWD/$formatter"
done
