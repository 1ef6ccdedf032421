#!/bin/sh
# Builds and tests on other systems than this machine's, in folders that debootstrap makes once: build/systems/NAME. Warnings are errors there.
# `other_systems.sh`: the unit tests of base and engine on Debian 13 with GCC; minutes, once ccache is warm.
# `other_systems.sh all`: on Debian 13 and sid the command, all unit tests and the demo with GCC; command and engine's tests with Clang.
# SYSTEMS="trixie" takes a part of the systems, COMPILERS="gcc" one of the compilers; CMAKE_BUILD_PARALLEL_LEVEL limits the processes.
# What cannot be done here (not root, no debootstrap, no connection) is skipped with a message. The last line sums up.
set -eu
cd "$(dirname "$0")/.."
mode=${1:-quick}
case "$mode" in
  quick) systems=${SYSTEMS-trixie} compilers=${COMPILERS-gcc} ;;
  all) systems=${SYSTEMS-trixie sid} compilers=${COMPILERS-gcc clang} ;;
  *) echo "usage: tools/other_systems.sh [all]" >&2; exit 2 ;;
esac
folder=$PWD/build/systems
# Beside this machine's cache, whose program is another version.
cache=${CCACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/ccache}-systems

say() { echo "other systems: $*"; }

# make_root SYSTEM: the system with nothing but its base.
make_root() {
  [ ! -e "$folder/$1/made" ] || return 0
  echo "other_systems: making build/systems/$1" >&2
  mkdir -p "$folder"
  rm -rf "$folder/$1.new"
  debootstrap --variant=minbase --include=ca-certificates "$1" "$folder/$1.new" >"$folder/$1.log" 2>&1 || { rm -rf "$folder/$1.new"; return 1; }
  # The lists of sid say that they are outdated after a week. A mirror that lags behind serves a test as well.
  [ "$1" != sid ] || echo 'Acquire::Check-Valid-Until "false";' >"$folder/$1.new/etc/apt/apt.conf.d/10outdated"
  mkdir -p "$folder/$1.new/src" "$folder/$1.new/ccache"
  touch "$folder/$1.new/made"
  rm -rf "${folder:?}/$1"
  mv "$folder/$1.new" "$folder/$1"
}

# inside SYSTEM COMMAND...: runs it there, with the checkout as /src, which it cannot change. No other process sees these mounts.
inside() {
  root=$folder/$1
  shift
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  # Authorities that this machine trusts, such as those of a company's package index.
  [ ! -e /etc/ssl/certs/ca-certificates.crt ] || cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
  # shellcheck disable=SC2016
  unshare --mount --propagation private sh -euc '
    root=$1 cache=$2
    shift 2
    mount -t proc proc "$root/proc"
    mount --rbind /dev "$root/dev"
    mount --bind "$cache" "$root/ccache"
    mount --bind "$PWD" "$root/src"
    mount -o remount,ro,bind "$root/src"
    exec chroot "$root" /usr/bin/env -C /src "$@"' sh "$root" "$cache" \
    -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 CCACHE_DIR=/ccache CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=1 \
    CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}" ${isa:+SDX_TEST_ISA="$isa"} \
    ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} ${PIP_INDEX_URL:+PIP_INDEX_URL="$PIP_INDEX_URL"} "$@"
}

# Without optimisation, a build takes a third of the time, but wide vectors and their emulation take minutes to test: one instruction set.
isa=""
! grep -qw avx2 /proc/cpuinfo || isa=avx2

# check SYSTEM COMPILER: builds in the system's /build/COMPILER and tests.
check() {
  case "$2" in gcc) cc=gcc cxx=g++ ;; *) cc=clang cxx=clang++ ;; esac
  inside "$1" cmake -G Ninja -S /src -B "/build/$2" -DCMAKE_C_COMPILER=$cc -DCMAKE_CXX_COMPILER=$cxx -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DSDX_ISA=$isa -DSDX_WARNINGS_AS_ERRORS=ON -DSDX_PYTHON=none \
    -DCMAKE_CXX_COMPILER_LAUNCHER=/src/cmake/ccache.sh >"$folder/$1-$2.log" || { tail -n 30 "$folder/$1-$2.log"; return 1; }
  tests='sdx_(base|engine)_tests'
  set -- "$1" "$2" sdx_base_tests sdx_engine_tests
  [ "$mode" = quick ] || set -- "$@" sdx_command
  if [ "$mode" = all ] && [ "$2" = gcc ]; then
    tests='sdx_.*_tests'
    set -- "$@" sdx_unit_tests sdx_product_tests
  fi
  system=$1 compiler=$2
  shift 2
  inside "$system" cmake --build "/build/$compiler" --target "$@" -- -k 0 || return 1
  inside "$system" ctest --test-dir "/build/$compiler" --no-tests=error --output-on-failure -j 2 -L unit -R "$tests" || return 1
  if [ "$mode" = all ] && [ "$compiler" = gcc ]; then
    inside "$system" tools/demo.sh "/build/$compiler" || return 1
  fi
}

# versions SYSTEM COMPILER: what was tested.
versions() {
  # shellcheck disable=SC2016
  inside "$1" sh -c '
    of() { dpkg-query -W -f="\${Version}\n" "$1" | sed "s/^[0-9]*://; s/[-+~].*//"; }
    case $1 in gcc) echo "GCC $(g++ -dumpfullversion)" ;; *) echo "Clang $(clang++ -dumpversion)" ;; esac
    echo "fmt $(of libfmt-dev), Highway $(of libhwy-dev), protobuf $(of libprotobuf-dev), CMake $(of cmake), Python $(of python3)"' sh "$2" |
    paste -s -d ,
}

if [ "$(id -u)" -ne 0 ] || ! command -v debootstrap >/dev/null || ! command -v unshare >/dev/null; then
  say "skipped: root, debootstrap and unshare are needed"
  exit 0
fi
if ! unshare --mount --propagation private mount -t proc proc /proc 2>/dev/null; then
  say "skipped: mounting is not allowed here"
  exit 0
fi
mkdir -p "$cache"
passed=0 failed=0 skipped="" summary=""
for system in $systems; do
  if ! make_root "$system"; then
    skipped="$skipped $system (see build/systems/$system.log)"
    continue
  fi
  packages="ccache libgtest-dev libgmock-dev"
  case " $compilers " in *" clang "*) packages="$packages clang" ;; esac
  # shellcheck disable=SC2086
  if ! inside "$system" sh -euc 'tools/setup.sh command; tools/install.sh other_systems "$@"; apt-get clean' sh $packages; then
    skipped="$skipped $system (its packages could not be installed)"
    continue
  fi
  for compiler in $compilers; do
    start=$(date +%s)
    if check "$system" "$compiler"; then passed=$((passed + 1)) result=passed; else failed=$((failed + 1)) result=FAILED; fi
    took=$(($(date +%s) - start))
    summary="$summary; $system $result ($(versions "$system" "$compiler"), $((took / 60)) min $((took % 60)) s)"
  done
done
say "$passed passed, $failed failed${summary:+: ${summary#; }}${skipped:+; skipped:$skipped}"
[ "$failed" -eq 0 ]
