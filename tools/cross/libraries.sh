# Sourced by scripts that build the libraries of the command for another system, from Debian's source packages. They set
#   system      its name, for messages
#   root        the checkout
#   prefix      where the libraries are installed
#   work        where they are compiled
#   toolchain   CMake's file that names the compilers
# JOBS limits how many files are compiled at once.
# shellcheck shell=sh disable=SC2154

# library NAME SOURCE [OPTION...]: builds one by CMake and installs it, once. SOURCE is a source package of Debian or a folder. The file
# built/NAME then has the folder of the sources and, line by line, what was installed.
library() {
  name=$1
  source=$2
  shift 2
  [ -e "$prefix/built/$name" ] && return
  echo "$system: building $name" >&2
  mkdir -p "$work"
  if [ ! -d "$source" ]; then
    "$root/tools/cross/debian_source.sh" "$source" "$work/$source"
    source=$work/$source
  fi
  cmake -S "$source" -B "$work/build-$name" -G Ninja --toolchain "$toolchain" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR:STRING=lib -DBUILD_SHARED_LIBS=OFF -DBUILD_TESTING=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
    -DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache "$@" >"$work/$name.log" 2>&1 || { tail -n 30 "$work/$name.log" >&2; return 1; }
  cmake --build "$work/build-$name" ${JOBS:+-j "$JOBS"} >>"$work/$name.log" 2>&1 || { tail -n 30 "$work/$name.log" >&2; return 1; }
  cmake --install "$work/build-$name" >>"$work/$name.log"
  # For tools/sbom.py.
  { echo "$source" && cat "$work/build-$name/install_manifest.txt"; } >"$work/$name.files"
  rm -rf "$work/build-$name"
  mv "$work/$name.files" "$prefix/built/$name"
}

# Headers that are the same on all systems, of this one's packages.
headers() {
  mkdir -p "$prefix/include"
  for header in protozero nlohmann CLI xxhash.h boost eigen3 sqlite3.h; do
    [ -e "$prefix/include/$header" ] || ln -s "/usr/include/$header" "$prefix/include/$header"
  done
}

# What every static command links, except zlib, which comes first: libpng wants it.
libraries_of_the_command() {
  library fmt fmtlib -DFMT_TEST=OFF -DFMT_DOC=OFF
  library highway highway -DHWY_ENABLE_TESTS=OFF -DHWY_ENABLE_EXAMPLES=OFF -DHWY_ENABLE_CONTRIB=OFF
  # Of its parts beside the vectors, headers alone are used: compiling them takes minutes.
  mkdir -p "$prefix/include/hwy/contrib"
  cp -r "$work/highway/hwy/contrib/math" "$work/highway/hwy/contrib/sort" "$prefix/include/hwy/contrib/"
  library utf8proc utf8proc
  library libpng libpng1.6 -DPNG_SHARED=OFF -DPNG_TESTS=OFF -DPNG_EXECUTABLES=OFF
  library libjpeg libjpeg-turbo -DENABLE_SHARED=OFF -DWITH_TURBOJPEG=OFF -DWITH_SIMD=OFF
  library libwebp libwebp -DWEBP_BUILD_ANIM_UTILS=OFF -DWEBP_BUILD_CWEBP=OFF -DWEBP_BUILD_DWEBP=OFF -DWEBP_BUILD_GIF2WEBP=OFF \
    -DWEBP_BUILD_IMG2WEBP=OFF -DWEBP_BUILD_VWEBP=OFF -DWEBP_BUILD_WEBPINFO=OFF -DWEBP_BUILD_WEBPMUX=OFF -DWEBP_BUILD_EXTRAS=OFF
  library openjpeg openjpeg2 -DBUILD_CODEC=OFF
  library pcre2 pcre2 -DPCRE2_BUILD_TESTS=OFF -DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_SUPPORT_UNICODE=ON
  library oniguruma libonig -DBUILD_TEST=OFF
  library yaml-cpp yaml-cpp -DYAML_CPP_BUILD_TESTS=OFF -DYAML_CPP_BUILD_TOOLS=OFF
  library flatbuffers flatbuffers -DFLATBUFFERS_BUILD_TESTS=OFF -DFLATBUFFERS_BUILD_FLATC=OFF -DFLATBUFFERS_BUILD_FLATHASH=OFF
}
