#!/bin/sh
# packages.sh INTO [PART...]: makes what a release consists of, in the folder INTO: Debian's packages (PART deb), a folder of programs and
# libraries that runs from anywhere (tarball), the command as one static file (static), Python's source package (sdist), then lists of what is
# inside, checksums and sizes. Without PARTs: all of them, and the wheels that are there, those of `make portable-wheels` before those of
# `make dropin-wheel`. The same sources give the same bytes.
#
# DEBIAN_BUILD (build/debian, of the preset `debian`) and PORTABLE_BUILD (build/portable, else build/release) name the builds.
set -eu
mkdir -p "$1"
into=$(cd "$1" && pwd)
shift
parts=${*:-deb tarball static sdist wheels}
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
debian=${DEBIAN_BUILD:-build/debian}
portable=${PORTABLE_BUILD:-$([ -e build/portable/bin/sdx ] && echo build/portable || echo build/release)}
version=$(sed -n 's/^project(sardonyx VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
stage=$(mktemp -d "$into/stage.XXXXXX")
trap 'rm -rf "$stage"' EXIT

make_deb() {
  cpack --config "$debian/CPackConfig.cmake" -G DEB -B "$stage/deb" >"$stage/cpack.log" 2>&1 || { cat "$stage/cpack.log" >&2; exit 1; }
  rm -f "$into"/*.deb
  mv "$stage"/deb/*.deb "$into/"
}

# Programs find the libraries, and libraries each other, beside themselves; files that name a folder name /opt/sardonyx.
make_tarball() {
  name=sardonyx-$version-linux-$(uname -m)
  for component in command libraries development dropin; do
    DESTDIR=$stage/tarball cmake --install "$portable" --prefix "/opt/$name" --component "$component" --strip >/dev/null
  done
  root=$stage/tarball/opt/$name
  find "$root" -name sdx.pc -exec sed -i 's|^prefix=.*|prefix=${pcfiledir}/../..|' {} +
  sed -i "s|/opt/$name/|/opt/sardonyx/|" "$root"/lib/systemd/system/*.service
  python3 -B tools/sbom.py --build "$portable" --copied libonig --notices "$root/share/doc/sardonyx/third-party.txt"
  cp CHANGELOG.md "$root/share/doc/sardonyx/"
  chmod -R u=rwX,go=rX "$root"
  pack "$stage/tarball/opt" "$name"
}

# pack FOLDER NAME: writes NAME.tar.zst of FOLDER/NAME.
pack() {
  rm -f "$into/$2.tar.zst"
  tar --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu -C "$1" -cf - "$2" | zstd -q -19 -o "$into/$2.tar.zst"
}

# One for each processor for which tools/static.sh has run.
make_static() {
  for build in build/static-x86_64 build/static-aarch64; do
    [ -e "$build/bin/sdx" ] || continue
    name=sardonyx-static-$version-linux-${build#build/static-}
    mkdir -p "$stage/static/$name"
    cp "$build/bin/sdx" LICENSE NOTICE.md CHANGELOG.md "$stage/static/$name/"
    python3 -B tools/sbom.py --build "$build" --notices "$stage/static/$name/third-party.txt"
    chmod -R u=rwX,go=rX "$stage/static/$name"
    pack "$stage/static" "$name"
  done
}

make_sdist() {
  venv=build/wheel-venv
  if ! tools/venv.sh "$venv" tools/wheel_requirements.txt; then
    echo "packages: the packages of tools/wheel_requirements.txt cannot be installed; there is no sdist" >&2
    return
  fi
  rm -f "$into"/sardonyx-*.tar.gz
  "$venv/bin/python" -B -c "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])" "$into" >/dev/null
}

make_wheels() {
  rm -f "$into"/*.whl
  kind=$(ls build/portable-wheel/*.whl >/dev/null 2>&1 && echo portable- || true)
  for wheel in "build/${kind}wheel"/*.whl "build/${kind}dropin-wheel"/*.whl; do
    [ ! -e "$wheel" ] || cp "$wheel" "$into/"
  done
}

for part in $parts; do
  "make_$part"
done
rm -f "$into"/*.spdx.json "$into/SHA256SUMS" "$into/sizes.md"
# What is inside: Debian's packages link other libraries than the rest contains.
find "$into" -maxdepth 1 -name '*.deb' | sort >"$stage/debs"
find "$into" -maxdepth 1 -type f ! -name '*.deb' ! -name 'sardonyx-static-*' | sort >"$stage/rest"
[ ! -s "$stage/debs" ] || xargs python3 -B tools/sbom.py --build "$debian" --out "$into/sardonyx-$version-debian.spdx.json" <"$stage/debs"
[ ! -s "$stage/rest" ] || xargs python3 -B tools/sbom.py --build "$portable" --out "$into/sardonyx-$version.spdx.json" <"$stage/rest"
for static in "$into"/sardonyx-static-*.tar.zst; do
  [ -e "$static" ] || continue
  processor=${static##*-linux-}
  python3 -B tools/sbom.py --build "build/static-${processor%.tar.zst}" --out "${static%.tar.zst}.spdx.json" "$static"
done
(cd "$into" && find . -maxdepth 1 -type f -printf '%P\n' | sort | xargs sha256sum) >"$stage/sums"
mv "$stage/sums" "$into/SHA256SUMS"
python3 -B tools/package_sizes.py "$into" | tee "$into/sizes.md"
