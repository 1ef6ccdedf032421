#!/bin/sh
# Installs Debian's browser and its driver for tests/faces/page_test.py if they are missing.
exec "$(dirname "$0")/install.sh" browser chromium chromium-driver
