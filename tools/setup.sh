#!/bin/sh
# Installs the Debian packages of tools/packages.txt that are missing; needs root or sudo only then. `setup.sh python` installs only those that
# `pip install .` needs, `setup.sh command` those that the command needs.
set -eu
cd "$(dirname "$0")"
# shellcheck disable=SC2046
exec ./install.sh setup $(awk -v purpose="${1:-}" '!/^#/ && (purpose == "" || ("," $2 ",") ~ ("," purpose ",")) { print $1 }' packages.txt)
