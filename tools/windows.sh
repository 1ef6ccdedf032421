#!/bin/sh
# Cross-builds for 64-bit Windows and runs the tests under Wine (docs/design/windows.md).
#   tools/windows.sh             all that is tested: unit tests of base, kernels and operators
#   tools/windows.sh libraries   the libraries alone
#   tools/windows.sh TARGET...   builds these targets and runs those that are unit tests
# Installs the compiler and Wine if they are missing (needs root or sudo only then). The libraries are built once from Debian's source
# packages into build/windows-libraries. For Debian and its derivatives. JOBS limits how many files are compiled at once.
set -eu
cd "$(dirname "$0")/.."
root=$PWD
prefix=$root/build/windows-libraries
work=$root/build/windows-sources

tools/install.sh windows g++-mingw-w64-x86-64-posix libz-mingw-w64-dev wine64 cmake ninja-build ccache python3 libprotozero-dev nlohmann-json3-dev libcli11-dev \
  libxxhash-dev libboost-dev libeigen3-dev googletest

# apt_for_sources ARGUMENT...: apt-get with the system's own list of servers, asked for sources.
apt_for_sources() {
  apt-get -qq -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/apt/parts" -o Dir::State::Lists="$work/apt/lists" \
    -o Dir::Cache="$work/apt/cache" -o Debug::NoLocking=1 -o APT::Sandbox::User=root "$@"
}

prepare_apt() {
  [ -e "$work/apt/ready" ] && return
  mkdir -p "$work/apt/parts" "$work/apt/lists/partial" "$work/apt/cache"
  for list in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ -e "$list" ] && sed -n 's/^deb /deb-src /p' "$list" >"$work/apt/parts/$(basename "$list" .list).list"
  done
  for list in /etc/apt/sources.list.d/*.sources; do
    [ -e "$list" ] && sed 's/^Types:.*/Types: deb-src/' "$list" >"$work/apt/parts/$(basename "$list")"
  done
  apt_for_sources update
  : >"$work/apt/ready"
}

# unpack SOURCE: sets `source` to the folder of a source package without Debian's changes.
unpack() {
  source=$work/$1
  [ -e "$source" ] && return
  prepare_apt
  mkdir -p "$work/packages" "$source.new"
  (cd "$work/packages" && apt_for_sources source --download-only --tar-only "$1" >/dev/null)
  tar -C "$source.new" --strip-components=1 -xf "$(find "$work/packages" -name "$1_*.orig.tar.*" ! -name '*.asc' | head -n 1)"
  mv "$source.new" "$source"
}

# library NAME SOURCE [OPTION...]: builds one by CMake and installs it, once.
library() {
  name=$1
  source=$2
  shift 2
  [ -e "$prefix/built/$name" ] && return
  echo "windows: building $name" >&2
  [ -d "$source" ] || unpack "$source"
  cmake -S "$source" -B "$work/build-$name" -G Ninja --toolchain "$root/cmake/windows.cmake" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DCMAKE_C_COMPILER_LAUNCHER=ccache \
    -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "$@" >"$work/$name.log" 2>&1 || { tail -n 30 "$work/$name.log" >&2; return 1; }
  cmake --build "$work/build-$name" ${JOBS:+-j "$JOBS"} >>"$work/$name.log" 2>&1 || { tail -n 30 "$work/$name.log" >&2; return 1; }
  cmake --install "$work/build-$name" >>"$work/$name.log"
  rm -rf "$work/build-$name"
  : >"$prefix/built/$name"
}

# Headers that are the same on all systems.
headers() {
  mkdir -p "$prefix/include"
  for header in protozero nlohmann CLI xxhash.h boost eigen3; do
    [ -e "$prefix/include/$header" ] || ln -s "/usr/include/$header" "$prefix/include/$header"
  done
}

# Debian has zlib for Windows, as an archive and as a DLL; the archive is wanted.
zlib() {
  system=/usr/x86_64-w64-mingw32
  mkdir -p "$prefix/lib" "$prefix/include"
  cp -u $system/lib/libz.a "$prefix/lib/"
  cp -u $system/include/zlib.h $system/include/zconf.h "$prefix/include/"
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
  library fmt fmtlib -DFMT_TEST=OFF -DFMT_DOC=OFF
  library googletest /usr/src/googletest -DBUILD_GMOCK=ON
  library highway highway -DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF
  library utf8proc utf8proc
  library libpng libpng1.6 -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_EXECUTABLES=OFF
  library libjpeg libjpeg-turbo -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DWITH_SIMD=OFF
  library libwebp libwebp -DWEBP_BUILD_ANIM_UTILS=OFF -DWEBP_BUILD_CWEBP=OFF -DWEBP_BUILD_DWEBP=OFF -DWEBP_BUILD_GIF2WEBP=OFF \
    -DWEBP_BUILD_IMG2WEBP=OFF -DWEBP_BUILD_VWEBP=OFF -DWEBP_BUILD_WEBPINFO=OFF -DWEBP_BUILD_WEBPMUX=OFF -DWEBP_BUILD_EXTRAS=OFF
  # The name that its own build files choose elsewhere.
  for name in webp webpmux webpdemux webpdecoder sharpyuv; do
    [ ! -e "$prefix/lib/liblib$name.a" ] || mv "$prefix/lib/liblib$name.a" "$prefix/lib/lib$name.a"
  done
  library openjpeg openjpeg2 -DBUILD_CODEC=OFF
  library pcre2 pcre2 -DPCRE2_BUILD_TESTS=OFF -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_SUPPORT_UNICODE=ON
  library oniguruma libonig -DBUILD_TEST=OFF
  library yaml-cpp yaml-cpp -DYAML_CPP_BUILD_TESTS=OFF -DYAML_CPP_BUILD_TOOLS=OFF
  library flatbuffers flatbuffers -DFLATBUFFERS_BUILD_TESTS=OFF -DFLATBUFFERS_BUILD_FLATC=OFF -DFLATBUFFERS_BUILD_FLATHASH=OFF
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
