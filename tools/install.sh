#!/bin/sh
# install.sh NAME PACKAGE...: installs those of Debian's packages that are missing; needs root or sudo only then. NAME is that of the script
# that wants them, for messages.
set -eu
name=$1
shift
missing=""
for package in "$@"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

echo "$name: installing$missing" >&2
root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "$name: these packages are missing and neither root nor sudo is at hand:$missing" >&2; exit 1; }
  root="sudo"
fi
$root apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing >/dev/null
