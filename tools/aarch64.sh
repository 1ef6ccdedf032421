#!/bin/sh
# Cross-builds for 64-bit Arm and runs the tests under QEMU, with and without the extensions that kernels use (docs/design/aarch64.md).
#   tools/aarch64.sh             everything that is tested: command, libraries, Python module, unit tests, conformance
#   tools/aarch64.sh quick       products of bytes and bfloat16 alone, compiled with little optimisation: a few minutes
#   tools/aarch64.sh wheel       build/portable-aarch64-wheel: the Python package for glibc 2.28 and newer; runs it in Debian 11's and 12's Python
#   tools/aarch64.sh bench       counts the instructions of products, for bench/results/aarch64.md
#   tools/aarch64.sh TARGET...   builds these targets and runs those that are unit tests
# Installs the compiler and QEMU if they are missing (needs root or sudo only then). Arm's libraries are unpacked into build/; the system's
# own packages are not changed. For Debian and its derivatives. JOBS limits how many files are compiled at once.
set -eu
cd "$(dirname "$0")/.."

tools/install.sh aarch64 g++-aarch64-linux-gnu qemu-user cmake ninja-build ccache python3

# unpack SYSROOT PACKAGE...: apt resolves the dependencies for an Arm machine without any packages, and only downloads them.
unpack() {
  sysroot=$1
  shift
  [ "$(cat "$sysroot/packages.txt" 2>/dev/null)" = "$*" ] && return
  echo "aarch64: unpacking libraries for Arm into $sysroot" >&2
  apt="$PWD/build/aarch64-apt"
  rm -rf "$apt" "$sysroot.new"
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial" "$sysroot.new"
  : >"$apt/status"
  for step in "update" "install -y --download-only --no-install-recommends $*"; do
    # shellcheck disable=SC2086
    apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::Lists="$apt/lists" -o Dir::State::status="$apt/status" \
      -o Dir::Cache="$apt/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=root $step >/dev/null
  done
  for package in "$apt"/cache/archives/*.deb; do dpkg-deb -x "$package" "$sysroot.new"; done
  echo "$*" >"$sysroot.new/packages.txt"
  rm -rf "$sysroot" "$apt"
  mv "$sysroot.new" "$sysroot"
}

# All libraries that the build looks for, those of the tests, and the Python that imports the module.
# shellcheck disable=SC2046
unpack build/aarch64-sysroot libc6-dev libstdc++6 libpython3-dev python3-minimal python3-numpy \
  $(awk '!/^#/ && $1 ~ /-dev$/ && $1 !~ /^(libclang|python3)/ { print $1 }' tools/packages.txt)

build() {
  preset=$1
  shift
  cmake --preset "$preset" >/dev/null
  cmake --build --preset "$preset" ${JOBS:+-j "$JOBS"} --target "$@"
}

case "${1:-all}" in
  all)
    # shellcheck disable=SC2046
    build aarch64 $(python3 -B tests/aarch64/run.py --targets)
    exec python3 -B tests/aarch64/run.py build/aarch64 build/aarch64-sysroot
    ;;
  quick)
    build aarch64-quick sdx_byte_tests
    exec python3 -B tests/aarch64/run.py build/aarch64-quick build/aarch64-sysroot --quick
    ;;
  wheel)
    tools/portable_sources.sh
    build portable-aarch64 sdx_python
    tools/wheel.sh build/portable-aarch64 build/portable-aarch64-wheel
    exec tests/aarch64/wheel.sh build/portable-aarch64-wheel
    ;;
  bench)
    build aarch64 sdx_bench_products
    exec python3 -B bench/aarch64/instructions.py build/aarch64 build/aarch64-sysroot
    ;;
  *)
    build aarch64 "$@"
    for target in "$@"; do
      case "$target" in *_tests) qemu-aarch64 -L build/aarch64-sysroot "build/aarch64/bin/$target" --gtest_brief=1 ;; esac
    done
    ;;
esac
