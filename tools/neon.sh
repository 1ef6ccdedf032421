#!/bin/sh
# Builds the kernels' tests for 64-bit Arm and runs them under QEMU, to test NEON. With arguments, builds and runs these targets instead:
# `tools/neon.sh sdx_engine_tests`.
# Installs the compiler and QEMU if they are missing (needs root or sudo only then). Arm's libraries are unpacked into build/; the system's
# own packages are not changed. For Debian and its derivatives.
set -eu
cd "$(dirname "$0")/.."

tools/install.sh neon g++-12-aarch64-linux-gnu qemu-user cmake ninja-build ccache

# apt resolves their dependencies for an Arm machine without any packages, and only downloads them.
libraries="libc6-dev libstdc++6 $(awk '!/^#/ && $2 ~ /arm/ { printf "%s ", $1 }' tools/packages.txt)"
sysroot="build/neon-sysroot"
if [ "$(cat "$sysroot/packages.txt" 2>/dev/null)" != "$libraries" ]; then
  echo "neon: unpacking libraries for Arm into $sysroot" >&2
  apt="$PWD/build/neon-apt"
  rm -rf "$apt" "$sysroot.new"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$sysroot.new"
  : >"$apt/status"
  apt_for_arm() {
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$apt/lists" -o Dir::State::status="$apt/status" \
      -o Dir::Cache="$apt/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
  }
  apt_for_arm update
  # shellcheck disable=SC2086
  apt_for_arm install -y --download-only --no-install-recommends $libraries >/dev/null
  for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$sysroot.new"; done
  echo "$libraries" >"$sysroot.new/packages.txt"
  rm -rf "$sysroot" "$apt"
  mv "$sysroot.new" "$sysroot"
fi

[ $# -gt 0 ] || set -- sdx_kernels_tests
cmake --preset neon >/dev/null
cmake --build --preset neon --target "$@"
for target in "$@"; do
  case "$target" in *_tests) qemu-aarch64 -L "$sysroot" "build/neon/bin/$target" --gtest_brief=1 ;; esac
done
