#!/bin/sh
# windows_zip.sh INTO: the command for 64-bit Windows as one ZIP archive in the folder INTO, built by tools/windows.sh. The same sources give
# the same bytes. JOBS limits how many files are compiled at once.
set -eu
mkdir -p "$1"
into=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
export LC_ALL=C TZ=UTC
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
version=$(sed -n 's/^project(sardonyx VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
name=sardonyx-$version-windows-x86_64
stage=$(mktemp -d "$into/stage.XXXXXX")
trap 'rm -rf "$stage"' EXIT

tools/windows.sh sdx_cli
mkdir "$stage/$name"
cp build/windows/bin/sdx.exe NOTICE.md CHANGELOG.md packaging/windows/README.txt "$stage/$name/"
cp LICENSE "$stage/$name/LICENSE.txt"
python3 -B tools/sbom.py --build build/windows --notices "$stage/$name/third-party.txt"
sed -i 's/$/\r/' "$stage/$name/README.txt" "$stage/$name/LICENSE.txt"
python3 -B - "$stage" "$into/$name.zip" <<'END'
import os
import sys
import time
import zipfile
from pathlib import Path

stage, archive = Path(sys.argv[1]), Path(sys.argv[2])
date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
    for file in sorted(path for path in stage.rglob("*") if path.is_file()):
        entry = zipfile.ZipInfo(str(file.relative_to(stage)), date)
        entry.external_attr = (0o755 if file.suffix == ".exe" else 0o644) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        out.writestr(entry, file.read_bytes(), compresslevel=9)
END
python3 -B tests/packages/windows_zip_test.py "$into/$name.zip"
ls -l "$into/$name.zip"
