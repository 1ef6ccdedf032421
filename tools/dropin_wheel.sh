#!/bin/sh
# dropin_wheel.sh BUILD INTO: packs Sardonyx's package `onnxruntime`, with the library of that name, as the wheel
# sardonyx-onnxruntime in the folder INTO. It needs the wheel sardonyx of the same version. Programs that look for the distribution
# `onnxruntime`, pip among them, find it. Exit code 77 if its tools (tools/wheel_requirements.txt) cannot be installed.
set -eu
build=$(cd "$1" && pwd)
mkdir -p "$2"
into=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
library=$(ls "$build"/lib/sardonyx/libonnxruntime.so.1.*.* 2>/dev/null | head -n 1)
if [ -z "$library" ] || [ ! -e "$build/lib/libsdx.so.0" ]; then
  echo "dropin_wheel: $build has no libonnxruntime.so: the target sdx_dropin_library builds it" >&2
  exit 1
fi
venv=build/wheel-venv
if ! tools/venv.sh "$venv" tools/wheel_requirements.txt; then
  echo "dropin_wheel: the packages of tools/wheel_requirements.txt cannot be installed (no connection to the package index?)" >&2
  exit 77
fi
python=$PWD/$venv/bin/python
PATH=$PWD/$venv/bin:$PATH
# The same sources give the same bytes: files have the commit's time.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
umask 022
version=$(sed -n 's/^project(sardonyx VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
ort=${library##*libonnxruntime.so.}

stage=$(mktemp -d "$into/stage.XXXXXX")
trap 'rm -rf "$stage"' EXIT
package=$stage/wheel/onnxruntime
about=$stage/wheel/sardonyx_onnxruntime-$version.dist-info
# pip unpacks this beside the packages, like the metadata of an installed onnxruntime.
stands_for=$stage/wheel/sardonyx_onnxruntime-$version.data/platlib/onnxruntime-$ort.dist-info
mkdir -p "$stage/wheel" "$about/licenses" "$stands_for"
cp -rL bindings/python/onnxruntime "$package"
find "$package" -name __pycache__ -prune -exec rm -rf {} +
# The library finds libsdx.so.0 in the folder above its own.
strip -o "$package/capi/libonnxruntime.so.$ort" "$library"
strip -o "$package/libsdx.so.0" "$build/lib/libsdx.so.0"
chmod 755 "$package/capi/libonnxruntime.so.$ort" "$package/libsdx.so.0"
cp LICENSE NOTICE.md "$about/licenses/"
python3 -B tools/sbom.py --build "$build" --notices "$about/licenses/third-party.txt"
cat >"$about/METADATA" <<END
Metadata-Version: 2.4
Name: sardonyx-onnxruntime
Version: $version
Summary: The package onnxruntime, answered by Sardonyx
License-Expression: MIT
License-File: LICENSE
License-File: NOTICE.md
License-File: third-party.txt
Requires-Python: >=3.9
Requires-Dist: numpy>=1.23
Requires-Dist: sardonyx==$version
END
cat >"$about/WHEEL" <<END
Wheel-Version: 1.0
Generator: dropin_wheel.sh
Root-Is-Purelib: false
Tag: py3-none-linux_$(uname -m)
END
cat >"$stands_for/METADATA" <<END
Metadata-Version: 2.1
Name: onnxruntime
Version: $ort
Summary: The package onnxruntime, answered by Sardonyx
Requires-Dist: sardonyx-onnxruntime
END
# pip names it to those who try to replace this distribution alone.
echo sardonyx-onnxruntime >"$stands_for/INSTALLER"
echo onnxruntime >"$stands_for/top_level.txt"
"$python" -m wheel pack --dest-dir "$stage" "$stage/wheel" >/dev/null
rm -f "$into"/*.whl
# A portable build has to run where it was made for.
glibc=$(sed -n 's/^SDX_GLIBC:[A-Z]*=//p' "$build/CMakeCache.txt")
platform=${glibc:+manylinux_$(echo "$glibc" | tr . _)_$(uname -m)}
"$python" -m auditwheel repair ${platform:+--plat "$platform"} --exclude 'libtiff.so.*' --exclude 'libheif.so.*' --exclude 'libjxl.so.*' --exclude 'libraw.so.*' --exclude 'liblcms2.so.*' \
  --wheel-dir "$into" "$stage"/*.whl >"$stage/repair.log" 2>&1 || { cat "$stage/repair.log" >&2; exit 1; }
ls "$into"/*.whl
