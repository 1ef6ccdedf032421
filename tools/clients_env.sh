#!/bin/sh
# Makes the virtual environments build/clients-venv with tests/clients/requirements.txt: published programs that call ONNX Runtime, to run
# them on Sardonyx instead; and build/serve-venv with tests/serve/requirements.txt: published clients of servers. Without a connection to
# the package index it says so and ends well: the tests are then skipped.
set -eu
cd "$(dirname "$0")/.."
wanted=tests/clients/requirements.txt
tools/venv.sh build/clients-venv "$wanted" --no-deps ||
  echo "clients_env: the packages of $wanted cannot be installed (no connection to the package index?); the tests of published programs are skipped" >&2

# Published clients of servers: of Triton's protocol (build/serving-venv), of OpenAI's interface (build/serve-venv).
tools/venv.sh build/serving-venv tests/clients/serving.txt --no-deps ||
  echo "clients_env: the packages of tests/clients/serving.txt cannot be installed; the test of published clients is skipped" >&2
tools/venv.sh build/serve-venv tests/serve/requirements.txt --no-deps ||
  echo "clients_env: the packages of tests/serve/requirements.txt cannot be installed; the tests of clients of sdx serve are skipped" >&2
