#!/bin/sh
# Creates the virtual environment build/bench-venv with the engines of bench/suite/requirements.txt.
set -eu
cd "$(dirname "$0")/.."
exec tools/venv.sh build/bench-venv bench/suite/requirements.txt
