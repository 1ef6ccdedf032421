#!/bin/sh
# Installs Debian's browser and its driver for tests/faces/page_test.py if they are missing; needs root or sudo only then.
set -eu
missing=""
for package in chromium chromium-driver; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

echo "browser: installing$missing" >&2
root=""
[ "$(id -u)" -eq 0 ] || root="sudo"
$root apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing >/dev/null
