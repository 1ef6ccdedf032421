#!/bin/sh
# Builds the command as one static file with musl, which runs on any Linux of its processor (docs/design/static.md).
#   tools/static.sh [ARCH]             build/static-ARCH/bin/sdx, and its tests in an empty root; ARCH: x86_64 (default) or aarch64
#   tools/static.sh libraries [ARCH]   its libraries alone, once: build/static-libraries-ARCH
# The compiler is Clang as the Python package ziglang brings it, with musl, libc++ and compiler-rt. The libraries are built from Debian's source
# packages. For Debian and its derivatives; aarch64's tests need qemu-user. JOBS limits how many files are compiled at once.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
what=all
case "${1:-}" in libraries) what=libraries; shift ;; esac
arch=${1:-x86_64}
case "$arch" in x86_64 | aarch64) ;; *) echo "static: unknown processor $arch; there are x86_64 and aarch64" >&2; exit 2 ;; esac
system=static
prefix=$root/build/static-libraries-$arch
work=$root/build/static-sources
toolchain=$root/build/static-tools/$arch.cmake
# shellcheck source=tools/cross/libraries.sh
. tools/cross/libraries.sh

tools/install.sh static cmake ninja-build ccache python3 python3-venv libprotozero-dev nlohmann-json3-dev libcli11-dev libxxhash-dev libboost-dev \
  libeigen3-dev libsqlite3-dev
if ! tools/venv.sh build/static-tools/venv tools/cross/requirements.txt; then
  echo "static: the package ziglang cannot be installed (no connection to the package index?)" >&2
  exit 1
fi

# The names that CMake and ccache expect of a Clang, for each processor, and CMake's file that names them.
compilers() {
  zig=$(find "$root/build/static-tools/venv/lib" -path '*/ziglang/zig' -type f | head -n 1)
  bin=$root/build/static-tools/$arch
  mkdir -p "$bin"
  for tool in cc:clang c++:clang++ ar:ar ranlib:ranlib; do
    to=$bin/${tool#*:}
    flags=""
    # Checks of undefined behaviour are on by default where nothing is optimised; so are tables for unwinding in asynchronous code.
    case $tool in c*) flags="-target $arch-linux-musl -fno-sanitize=all" ;; esac
    printf '#!/bin/sh\nexport ZIG_GLOBAL_CACHE_DIR=%s ZIG_LOCAL_CACHE_DIR=%s\nexec %s %s %s "$@"\n' \
      "$root/build/static-tools/cache" "$root/build/static-tools/cache" "$zig" "${tool%%:*}" "$flags" >"$to.new"
    chmod +x "$to.new"
    # ccache tells compilers by their files' times.
    if cmp -s "$to.new" "$to"; then rm "$to.new"; else mv "$to.new" "$to"; fi
  done
  printf 'set(SDX_MUSL %s)\ninclude(%s)\n' "$arch" "$root/cmake/musl.cmake" >"$toolchain"
}

# By its own build files: those for CMake name files that Debian leaves out.
zlib() {
  [ -e "$prefix/built/zlib" ] && return
  echo "static: building zlib" >&2
  tools/cross/debian_source.sh zlib "$work/zlib"
  rm -rf "$work/build-zlib"
  cp -r "$work/zlib" "$work/build-zlib"
  (cd "$work/build-zlib" && CC="$bin/clang" AR="$bin/ar" RANLIB="$bin/ranlib" CFLAGS="-O3 -fPIC" ./configure --static && make ${JOBS:+-j "$JOBS"} libz.a) \
    >"$work/zlib.log" 2>&1 || { tail -n 30 "$work/zlib.log" >&2; return 1; }
  mkdir -p "$prefix/include"
  cp "$work/build-zlib/libz.a" "$prefix/lib/"
  cp "$work/build-zlib/zlib.h" "$work/build-zlib/zconf.h" "$prefix/include/"
  rm -rf "$work/build-zlib"
  printf '%s\n' "$work/zlib" "$prefix/lib/libz.a" "$prefix/include/zlib.h" "$prefix/include/zconf.h" >"$prefix/built/zlib"
}

libraries() {
  mkdir -p "$prefix/built" "$prefix/lib"
  headers
  zlib
  # In place of musl's allocator, which gives large blocks back at once and has one lock: cmake/musl.cmake.
  library mimalloc mimalloc -DMI_BUILD_SHARED=OFF -DMI_BUILD_TESTS=OFF -DMI_BUILD_OBJECT=ON -DMI_INSTALL_TOPLEVEL=ON -DMI_LOCAL_DYNAMIC_TLS=OFF \
    -DCMAKE_C_FLAGS=-D__USE_ISOC11
  libraries_of_the_command
}

compilers
libraries
[ "$what" = all ] || exit 0
cmake --preset "static-$arch" >/dev/null
cmake --build --preset "static-$arch" ${JOBS:+-j "$JOBS"} --target sdx_cli
emulator=""
if [ "$arch" != "$(uname -m)" ]; then
  tools/install.sh static qemu-user-static
  emulator=qemu-$arch-static
fi
# shellcheck disable=SC2086
python3 -B tests/packages/static_test.py "build/static-$arch/bin/sdx" $emulator
