#!/bin/sh
# Creates build/large-venv and build/torch-venv with tests/clients/large.txt and torch.txt: published programs that need much beside themselves
# (500 MB; with PyTorch for GPUs 4 GB), to run them on Sardonyx instead. Without a connection to the package index it prints a message and
# succeeds; the tests are then skipped.
set -eu
cd "$(dirname "$0")/.."
tools/venv.sh build/large-venv tests/clients/large.txt --no-deps ||
  echo "clients_large_env: the packages of tests/clients/large.txt cannot be installed (no connection to the package index?); their tests are skipped" >&2
tools/venv.sh build/torch-venv tests/clients/torch.txt ||
  echo "clients_large_env: the packages of tests/clients/torch.txt cannot be installed; their tests are skipped" >&2
