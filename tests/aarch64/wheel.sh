#!/bin/sh
# wheel.sh FOLDER: runs the wheel in FOLDER (tools/aarch64.sh wheel) under QEMU, by the Pythons of Debian 11 (glibc 2.31) and Debian 12 for 64-bit
# Arm. Needs root and debootstrap; without them, says so.
set -eu
wheel=$(ls "$1"/sardonyx-*_aarch64.whl)
cd "$(dirname "$0")/../.."
if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null; then
  echo "aarch64 wheel: not run: root and debootstrap are needed"
  exit 0
fi
failed=0
for suite in bullseye bookworm; do
  root=build/aarch64-$suite
  if [ ! -e "$root/made" ]; then
    echo "aarch64 wheel: fetching $suite" >&2
    rm -rf "$root"
    debootstrap --foreign --arch=arm64 --variant=minbase --include=python3-minimal,python3-numpy "$suite" "$root" >"$root.log" 2>&1 ||
      { tail -n 20 "$root.log" >&2; exit 1; }
    for package in "$root"/var/cache/apt/archives/*.deb; do dpkg-deb -x "$package" "$root"; done
    touch "$root/made"
  fi
  rm -rf "$root/wheel"
  mkdir "$root/wheel"
  python3 -m zipfile -e "$wheel" "$root/wheel"
  python=$(find "$root/usr/bin" -name 'python3.[0-9]*' -type f | head -n 1)
  for processor in max cortex-a53; do
    if said=$(PYTHONPATH=$root/wheel qemu-aarch64 -L "$root" -cpu $processor "$python" -B tests/aarch64/module.py 2>&1); then
      echo "aarch64 wheel: $suite, ${python##*/}, processor $processor: ok"
    else
      failed=1
      printf 'aarch64 wheel: %s, %s, processor %s: FAILED\n%s\n' "$suite" "${python##*/}" $processor "$said"
    fi
  done
done
exit $failed
