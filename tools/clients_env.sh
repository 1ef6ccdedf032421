#!/bin/sh
# Creates the virtual environment build/clients-venv with tests/clients/requirements.txt: published programs that call ONNX Runtime, to run
# them on Sardonyx instead. Without a connection to the package index it prints a message and succeeds; the tests are then skipped.
set -eu
cd "$(dirname "$0")/.."
wanted=tests/clients/requirements.txt
tools/venv.sh build/clients-venv "$wanted" --no-deps ||
  echo "clients_env: the packages of $wanted cannot be installed (no connection to the package index?); the tests of published programs are skipped" >&2

# Also creates build/serving-venv: published clients of servers (tests/clients/serving.py, tests/serve/openai_test.py).
tools/venv.sh build/serving-venv tests/clients/serving.txt --no-deps ||
  echo "clients_env: the packages of tests/clients/serving.txt cannot be installed; the tests of published clients are skipped" >&2

# And build/frameworks-venv: frameworks that talk to OpenAI's interface (tests/clients/frameworks.py).
tools/venv.sh build/frameworks-venv tests/clients/frameworks.txt --no-deps ||
  echo "clients_env: the packages of tests/clients/frameworks.txt cannot be installed; the tests of published frameworks are skipped" >&2
