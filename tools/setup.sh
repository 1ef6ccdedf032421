#!/bin/sh
# Installs the Debian packages for building and testing if they are missing; needs root or sudo only then.
# `setup.sh python` installs only those that `pip install .` needs.
set -eu

packages="
  cmake ninja-build g++ python3 python3-venv python3-dev
  libhwy-dev libprotozero-dev libfmt-dev nlohmann-json3-dev
  libjpeg-dev libpng-dev libwebp-dev zlib1g-dev libutf8proc-dev libpcre2-dev libxxhash-dev libopenjp2-7-dev libonig-dev
  libflatbuffers-dev flatbuffers-compiler
"
[ "${1:-}" = python ] || packages="$packages
  ccache git pkg-config
  clang-16 clang-format-16 clang-tidy-16 libclang-rt-16-dev llvm-16
  libcli11-dev libyaml-cpp-dev libcpp-httplib-dev libssl-dev
  libeigen3-dev liblcms2-dev libtiff-dev libheif-dev libjxl-dev libraw-dev libboost-dev libsqlite3-dev
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc wrk
  golang-go cargo rustc
  libgtest-dev libgmock-dev libbenchmark-dev
  libonnx-testdata debootstrap
"
missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

echo "setup: installing$missing" >&2
root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: these packages are missing and neither root nor sudo is at hand:$missing" >&2; exit 1; }
  root="sudo"
fi
$root apt-get update -qq
# shellcheck disable=SC2086
DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing >/dev/null
