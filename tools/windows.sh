#!/bin/sh
# Cross-builds for 64-bit Windows and runs the tests under Wine (docs/design/windows.md).
#   tools/windows.sh             all that is tested: unit tests of base, kernels and operators
#   tools/windows.sh libraries   the libraries alone
#   tools/windows.sh TARGET...   builds these targets and runs those that are unit tests
# Installs the compiler and Wine if they are missing (needs root or sudo only then). The libraries are built once from Debian's source
# packages into build/windows-libraries. For Debian and its derivatives. JOBS limits how many files are compiled at once.
set -eu
cd "$(dirname "$0")/.."
system=windows
root=$PWD
prefix=$root/build/windows-libraries
work=$root/build/windows-sources
toolchain=$root/cmake/windows.cmake
# shellcheck source=tools/cross/libraries.sh
. tools/cross/libraries.sh

tools/install.sh windows g++-mingw-w64-x86-64-posix libz-mingw-w64-dev wine64 cmake ninja-build ccache python3 libprotozero-dev nlohmann-json3-dev libcli11-dev \
  libxxhash-dev libboost-dev libeigen3-dev libsqlite3-dev googletest

# Debian has zlib for Windows, as an archive and as a DLL; the archive is wanted.
zlib() {
  from=/usr/x86_64-w64-mingw32
  mkdir -p "$prefix/lib" "$prefix/include"
  cp -u $from/lib/libz.a "$prefix/lib/"
  cp -u $from/include/zlib.h $from/include/zconf.h "$prefix/include/"
}

# What cmake/windows.cmake links into every program: type 24 is a manifest, and 1 that of a program.
manifest() {
  [ "$prefix/manifest.o" -nt cmake/windows.manifest ] && return
  echo '1 24 "cmake/windows.manifest"' | x86_64-w64-mingw32-windres -J rc -O coff -o "$prefix/manifest.o"
}

libraries() {
  mkdir -p "$prefix/built"
  manifest
  headers
  zlib
  library googletest /usr/src/googletest -DBUILD_GMOCK=ON
  libraries_of_the_command
  # The name that its own build files choose elsewhere.
  for name in webp webpmux webpdemux webpdecoder sharpyuv; do
    [ ! -e "$prefix/lib/liblib$name.a" ] || mv "$prefix/lib/liblib$name.a" "$prefix/lib/lib$name.a"
  done
}

build() {
  cmake --preset windows >/dev/null
  cmake --build --preset windows ${JOBS:+-j "$JOBS"} --target "$@"
}

run() {
  for target in "$@"; do
    case "$target" in *_tests) tools/wine.sh "build/windows/bin/$target.exe" --gtest_brief=1 ;; esac
  done
}

libraries
case "${1:-all}" in
  libraries) ;;
  all)
    build sdx_base_tests sdx_kernels_tests sdx_operators_tests
    run sdx_base_tests sdx_kernels_tests sdx_operators_tests
    ;;
  *)
    build "$@"
    run "$@"
    ;;
esac
